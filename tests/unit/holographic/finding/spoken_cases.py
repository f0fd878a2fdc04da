"""Questions in many languages: each with the memory that answers it, and one that does not.

The other one shares the question's common words. All sentences are our own.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec


class Case(msgspec.Struct, frozen=True):
    """A question, its answer, and a memory that shares the question's common words."""

    asked: str
    right: str
    other: str


SPOKEN: Final[Mapping[str, Sequence[Case]]] = MappingProxyType(
    {
        "english": (
            Case(
                "Which paintings did I sell?",
                "I sold a painting to the museum",
                "Which did I take to the station, the bag or the box.",
            ),
            Case(
                "Where are the keys kept?",
                "I keep the spare key under the flowerpot",
                "Where are you going, and what are the plans.",
            ),
            Case(
                "What did my brother write about?",
                "My brother wrote a book about bridges",
                "What did you think about my day.",
            ),
            Case(
                "Who is teaching me swimming?",
                "Olga teaches swimmers on Mondays",
                "Who is it that was asking me for that.",
            ),
            Case(
                "When were the windows cleaned?",
                "The window cleaner came on Friday",
                "When were they at the house.",
            ),
            Case(
                "Which mice live in the barn?",
                "A mouse lives behind the barn door",
                "Which of them is in the best mood.",
            ),
            Case(
                "What am I allergic to?",
                "My allergies: peanuts and cats",
                "What am I to do with it.",
            ),
            Case(
                "How is the server backed up?",
                "Backups of all servers run at night",
                "How is it going up there.",
            ),
        ),
        "german": (
            Case(
                "Wie heißen meine Katzen?",
                "Meine Katze heißt Minka",
                "Wie war es heute bei meinen Eltern.",
            ),
            Case(
                "Wo liegen die Schlüssel?",
                "Der Wohnungsschlüssel liegt unter der Matte",
                "Wo waren die anderen, als es anfing.",
            ),
            Case(
                "Welche Häuser haben wir besichtigt?",
                "Das Haus am See haben wir am Montag besichtigt",
                "Welche haben wir noch, und welche nicht.",
            ),
            Case(
                "Wann geht der Zug nach Hamburg?",
                "Die Züge nach Hamburg fahren stündlich",
                "Wann kommt der Brief nach dem Fest.",
            ),
            Case(
                "Was isst meine Schwester nicht?",
                "Meine Schwester mag keine Pilze",
                "Was ist nicht so wie meine Idee.",
            ),
            Case(
                "Wer repariert das Fahrrad?",
                "Die Fahrradreparatur macht Jens am Markt",
                "Wer war das, der das gesagt hat.",
            ),
            Case(
                "Wie ist das Passwort für den Gastzugang?",
                "Gastzugänge haben das Passwort Apfelbaum",
                "Wie ist das Wetter für den Ausflug.",
            ),
            Case(
                "Wogegen bin ich geimpft?",
                "Meine Impfung gegen Tetanus war im März",
                "Ich bin für mehr, nicht gegen mehr.",
            ),
        ),
        "french": (
            Case(
                "Où habitent mes cousines ?",
                "Ma cousine habite à Lyon",
                "Où est-ce que tu vas avec mes amis.",
            ),
            Case(
                "Quels livres ai-je empruntés ?",
                "J'ai emprunté un livre sur les étoiles",
                "Quels sont les jours où je suis là.",
            ),
            Case(
                "Que mangent les chevaux ?",
                "Le cheval mange du foin et des pommes",
                "Que font les autres avec les enfants.",
            ),
            Case(
                "Quand ouvre la piscine ?",
                "La piscine est ouverte à partir de sept heures",
                "Quand est-ce que la réunion commence.",
            ),
            Case(
                "Qui a réparé la voiture ?",
                "Le garagiste Marc répare nos voitures",
                "Qui a dit que la fête était finie.",
            ),
            Case(
                "Quelle est la couleur préférée de ma fille ?",
                "Ma fille préfère le vert",
                "Quelle est la date de la rentrée.",
            ),
            Case(
                "Combien coûtent les billets ?",
                "Un billet coûte douze euros",
                "Combien de temps est-ce que ça dure.",
            ),
            Case(
                "À quoi suis-je allergique ?",
                "J'ai une allergie aux noix",
                "Je suis à la maison, à quoi bon.",
            ),
        ),
        "spanish": (
            Case(
                "¿Dónde viven mis hermanas?",
                "Mi hermana vive en Sevilla",
                "¿Dónde están mis amigos y quién es esa.",
            ),
            Case(
                "¿Qué comió el perro?",
                "El perro come arroz con pollo",
                "¿Qué es lo que el otro quería.",
            ),
            Case(
                "¿Cuándo compramos las bicicletas?",
                "Compré una bicicleta roja en mayo",
                "¿Cuándo es la fiesta de las nueve.",
            ),
            Case(
                "¿Quién pintaba la pared?",
                "Lucía pintó las paredes del salón",
                "¿Quién era la que estaba allí.",
            ),
            Case(
                "¿Cuál es la contraseña del servidor?",
                "Las contraseñas de los servidores están en la caja fuerte",
                "¿Cuál es la hora de la cena.",
            ),
            Case(
                "¿Qué libros me recomendó mi profesora?",
                "La profesora recomienda el libro de Cortázar",
                "¿Qué me dijo mi vecino.",
            ),
            Case(
                "¿A qué soy alérgico?",
                "Tengo alergia a los mariscos",
                "¿A qué hora soy yo el primero.",
            ),
            Case(
                "¿Por dónde corrí el maratón?",
                "Corro maratones por la costa",
                "¿Por dónde se va a la plaza.",
            ),
        ),
        "italian": (
            Case(
                "Dove abitano i miei nonni?",
                "Mio nonno abita a Torino",
                "Dove sono i miei, e chi è quello.",
            ),
            Case(
                "Quali canzoni cantava la zia?",
                "La zia canta una canzone napoletana",
                "Quali sono le cose della casa.",
            ),
            Case(
                "Quando parte il traghetto?",
                "I traghetti partono alle otto",
                "Quando è il giorno della festa.",
            ),
            Case(
                "Chi ha riparato le finestre?",
                "Il falegname ripara la finestra grande",
                "Chi ha detto che le hai.",
            ),
            Case(
                "Che cosa mangiano i gatti?",
                "Il gatto mangia tonno fresco",
                "Che cosa sono i fatti di cui parli.",
            ),
            Case(
                "Qual è il colore preferito di Giulia?",
                "Giulia preferisce i colori scuri",
                "Qual è il nome di questo.",
            ),
            Case(
                "Quanto costano i biglietti?",
                "Il biglietto costa nove euro",
                "Quanto tempo ci vuole con i bambini.",
            ),
            Case(
                "Dove ho parcheggiato?",
                "La macchina è nel parcheggio dietro la stazione",
                "Dove ho messo il cappello.",
            ),
        ),
        "portuguese": (
            Case(
                "Onde moram minhas primas?",
                "Minha prima mora em Recife",
                "Onde estão minhas coisas e quem é ela.",
            ),
            Case(
                "Quais livros eu comprei?",
                "Comprei um livro de receitas",
                "Quais são os dias em que eu vou.",
            ),
            Case(
                "Quando abrem as piscinas?",
                "A piscina abre às sete",
                "Quando são as festas.",
            ),
            Case(
                "Quem consertou o telhado?",
                "O pedreiro conserta telhados na rua de baixo",
                "Quem disse que o dia acabou.",
            ),
            Case(
                "O que os cavalos comem?",
                "O cavalo come capim e cenoura",
                "O que os outros dizem.",
            ),
            Case(
                "Qual é a cor preferida do meu filho?",
                "Meu filho prefere cores claras",
                "Qual é a data do meu voo.",
            ),
            Case(
                "Quanto custam as passagens?",
                "A passagem custa trinta reais",
                "Quanto tempo as aulas têm.",
            ),
            Case(
                "A que sou alérgica?",
                "Tenho alergias a camarão",
                "A que horas sou chamada.",
            ),
        ),
        "dutch": (
            Case(
                "Waar wonen mijn zussen?",
                "Mijn zus woont in Utrecht",
                "Waar zijn mijn spullen en wie heeft ze.",
            ),
            Case(
                "Welke boeken heb ik geleend?",
                "Ik heb een boek over vogels geleend",
                "Welke heb ik nog niet.",
            ),
            Case(
                "Wanneer vertrekken de treinen?",
                "De trein vertrekt om acht uur",
                "Wanneer is de dag dat de winkel sluit.",
            ),
            Case(
                "Wie repareerde de fiets?",
                "De fietsenmaker repareert fietsen op dinsdag",
                "Wie was de man die dat zei.",
            ),
            Case(
                "Wat eten de katten?",
                "De kat eet graag tonijn",
                "Wat doen de anderen met de rest.",
            ),
            Case(
                "Waar ligt de sleutel?",
                "De huissleutels liggen onder de mat",
                "Waar was de bus toen het begon.",
            ),
            Case(
                "Hoeveel kosten de kaartjes?",
                "Een kaartje kost tien euro",
                "Hoeveel van de mensen zijn hier.",
            ),
            Case(
                "Waarvoor ben ik allergisch?",
                "Mijn allergie: pinda's",
                "Ik ben voor meer, maar niet nu.",
            ),
        ),
        "swedish": (
            Case(
                "Var bor mina systrar?",
                "Min syster bor i Lund",
                "Var är mina vänner och vad gör de.",
            ),
            Case(
                "Vilka böcker lånade jag?",
                "Jag har lånat en bok om fåglar",
                "Vilka är det som jag har.",
            ),
            Case(
                "När går tågen?",
                "Tåget går klockan åtta",
                "När är det som de kommer.",
            ),
            Case(
                "Vem lagade cykeln?",
                "Erik lagar cyklar på tisdagar",
                "Vem var det som sa det.",
            ),
            Case(
                "Vad äter katterna?",
                "Katten äter helst tonfisk",
                "Vad är det som de vill.",
            ),
            Case(
                "Var ligger nyckeln?",
                "Husnycklarna ligger under mattan",
                "Var var vi när det hände.",
            ),
            Case(
                "Vad kostar biljetterna?",
                "En biljett kostar tio kronor",
                "Vad är det för dag.",
            ),
            Case(
                "Vad är jag allergisk mot?",
                "Min allergi: jordnötter",
                "Vad är jag om inte glad.",
            ),
        ),
        "finnish": (
            Case(
                "Missä siskoni asuvat?",
                "Siskoni asuu Turussa",
                "Missä olet ja mikä on se.",
            ),
            Case(
                "Mitä kirjoja lainasin?",
                "Lainasin kirjan linnuista",
                "Mitä sinä olet, ja mitä minä.",
            ),
            Case(
                "Milloin juna lähtee?",
                "Junat lähtevät kahdeksalta",
                "Milloin se on, kun hän tulee.",
            ),
            Case(
                "Kuka korjasi polkupyörän?",
                "Matti korjaa polkupyöriä tiistaisin",
                "Kuka se oli, joka niin sanoi.",
            ),
            Case(
                "Missä avain on?",
                "Avaimet ovat maton alla",
                "Missä kauppa on.",
            ),
            Case(
                "Mitä lippu maksaa?",
                "Liput maksavat kymmenen euroa",
                "Mitä se on, ja miksi.",
            ),
            Case(
                "Mitä kissani syövät?",
                "Kissani syö tonnikalaa",
                "Mitä sinun pitää tehdä.",
            ),
            Case(
                "Milloin kirjasto aukeaa?",
                "Kirjaston ovet aukeavat yhdeksältä",
                "Milloin loma on.",
            ),
        ),
        "turkish": (
            Case(
                "Kedimin adı ne?",
                "Kedim Pamuk adını pencerede aldı",
                "Bu ne, ve o ne zaman.",
            ),
            Case(
                "Kız kardeşlerim nerede yaşıyor?",
                "Kız kardeşim İzmir'de yaşar",
                "Bu nerede ve kim için.",
            ),
            Case(
                "Hangi kitapları aldım?",
                "Kuşlar hakkında bir kitap aldım",
                "Hangi gün, ve hangi saat için.",
            ),
            Case(
                "Trenler ne zaman kalkıyor?",
                "Tren sekizde kalkar",
                "Ne zaman ve ne kadar.",
            ),
            Case(
                "Bisikleti kim tamir etti?",
                "Bisikletler için tamir ustası Ali",
                "Kim o, ve kim değil.",
            ),
            Case(
                "Anahtarlar nerede?",
                "Anahtar paspasın altında",
                "O nerede, bu nerede.",
            ),
            Case(
                "ISPARTA'da ne yedim?",
                "Isparta'da gül reçeli yedim",
                "İstanbul'da ne var.",
            ),
            Case(
                "Biletler ne kadar?",
                "Bir bilet on lira",
                "Bu ne kadar güzel, ne kadar iyi!.",
            ),
        ),
        "polish": (
            Case(
                "Gdzie mieszkają moje siostry?",
                "Moja siostra mieszka w Gdańsku",
                "Gdzie są moje rzeczy i kto to jest.",
            ),
            Case(
                "Jakie książki kupiłem?",
                "Kupiłem książkę o ptakach",
                "Jakie to jest i co z tego.",
            ),
            Case(
                "Kiedy odjeżdżają pociągi?",
                "Pociąg odjeżdża o ósmej",
                "Kiedy jest to, o czym on mówi.",
            ),
            Case(
                "Kto naprawił rower?",
                "Rowery naprawia Marek",
                "Kto to był i co on ma.",
            ),
            Case(
                "Co jedzą koty?",
                "Kot je tuńczyka, inne koty ryż",
                "Co to jest i po co.",
            ),
            Case(
                "Gdzie leżą klucze?",
                "Klucz leży pod wycieraczką",
                "Gdzie jest to, co było tam.",
            ),
            Case(
                "Ile kosztują bilety?",
                "Bilet kosztuje dziesięć złotych",
                "Ile jest dni do tego.",
            ),
            Case(
                "Jak nazywa się moja lekarka?",
                "Lekarka nazywa się Nowak",
                "Jak się masz, moja droga.",
            ),
        ),
        "czech": (
            Case(
                "Kde bydlí moje sestry?",
                "Moje sestra bydlí v Brně",
                "Kde jsou moje věci a kdo je to.",
            ),
            Case(
                "Jaké knihy jsem koupil?",
                "Koupil jsem knihu o ptácích",
                "Jaké to je a co s tím.",
            ),
            Case(
                "Kdy odjíždějí vlaky?",
                "Vlak odjíždí v osm",
                "Kdy to je a kde to bylo.",
            ),
            Case(
                "Kdo opravil kolo?",
                "Kola opravuje Marek",
                "Kdo to byl a co má.",
            ),
            Case(
                "Kde leží klíče?",
                "Klíč leží pod rohožkou",
                "Kde je to, co bylo tam.",
            ),
            Case(
                "Kolik stojí lístky?",
                "Lístek stojí deset korun",
                "Kolik je dní do toho.",
            ),
            Case(
                "Jak se jmenuje můj lékař?",
                "Lékařka se jmenuje Nováková, lékař Dvořák",
                "Jak se máš, můj milý.",
            ),
            Case(
                "Co snědly kočky?",
                "Kočka má ráda tuňáka",
                "Co to je a proč.",
            ),
        ),
        "russian": (
            Case(
                "Где живут мои сёстры?",
                "Моя сестра живёт в Туле",
                "Где мои вещи и кто это был.",
            ),
            Case(
                "Какие книги я купил?",
                "Я купил книгу о птицах",
                "Какие это были, и что я с ними.",
            ),
            Case(
                "Когда отходят поезда?",
                "Поезд отходит в восемь",
                "Когда это было, и где они.",
            ),
            Case(
                "Кто починил велосипед?",
                "Велосипеды чинит Марк",
                "Кто это был и что он сказал.",
            ),
            Case(
                "Что едят кошки?",
                "Кошка любит тунца",
                "Что это такое и почему.",
            ),
            Case(
                "Где лежат ключи?",
                "Ключ лежит под ковриком",
                "Где это, что было там.",
            ),
            Case(
                "Сколько стоят билеты?",
                "Билет стоит десять рублей",
                "Сколько ещё дней до этого.",
            ),
            Case(
                "На что у меня аллергия?",
                "Моя аллергия: орехи, аллергией на кошек не страдаю",
                "На что это у вас похоже.",
            ),
        ),
        "ukrainian": (
            Case(
                "Де живуть мої сестри?",
                "Моя сестра живе у Львові",
                "Де мої речі і хто це був.",
            ),
            Case(
                "Які книги я купила?",
                "Я купила книгу про птахів",
                "Які це були, і що я з ними.",
            ),
            Case(
                "Коли відходять поїзди?",
                "Поїзд відходить о восьмій",
                "Коли це було, і де вони.",
            ),
            Case(
                "Хто полагодив велосипед?",
                "Велосипеди лагодить Марко",
                "Хто це був і що він має.",
            ),
            Case(
                "Що їдять кішки?",
                "Кішка любить тунця",
                "Що це таке і чому.",
            ),
            Case(
                "Де лежать ключі?",
                "Ключ лежить під килимком",
                "Де це, що було там.",
            ),
            Case(
                "Скільки коштують квитки?",
                "Квиток коштує десять гривень",
                "Скільки ще днів до того.",
            ),
            Case(
                "Який пароль від сервера?",
                "Паролі серверів у сейфі",
                "Який це день від того.",
            ),
        ),
        "greek": (
            Case(
                "Πού μένουν οι αδελφές μου;",
                "Η αδελφή μου μένει στην Πάτρα",
                "Πού είναι οι φίλοι μου και τι θα κάνουν.",
            ),
            Case(
                "Ποια βιβλία αγόρασα;",
                "Αγόρασα ένα βιβλίο για τα πουλιά",
                "Ποια είναι η μέρα και ποια η ώρα.",
            ),
            Case(
                "Πότε φεύγουν τα τρένα;",
                "Το τρένο φεύγει στις οκτώ",
                "Πότε είναι η γιορτή και πού.",
            ),
            Case(
                "Ποιος επισκεύασε το ποδήλατο;",
                "Τα ποδήλατα τα επισκευάζει ο Μάρκος",
                "Ποιος ήταν αυτός και τι είχε.",
            ),
            Case(
                "Τι τρώνε οι γάτες;",
                "Η γάτα θέλει τόνο",
                "Τι είναι αυτό και γιατί.",
            ),
            Case(
                "Πού είναι τα κλειδιά;",
                "Το κλειδί είναι κάτω από το χαλάκι",
                "Πού είναι αυτό που ήταν εκεί.",
            ),
            Case(
                "Πόσο κοστίζουν τα εισιτήρια;",
                "Ένα εισιτήριο κοστίζει δέκα ευρώ",
                "Πόσο μακριά είναι.",
            ),
            Case(
                "Ποιος είναι ο γιατρός μου;",
                "Γιατροί: η Ελένη Νικολάου",
                "Ποιος είναι ο λόγος.",
            ),
        ),
        "arabic": (
            Case(
                "أين تقع المكتبة؟",
                "مكتبة الحي تقع خلف المدرسة",
                "أين كان هذا ومن هو.",
            ),
            Case(
                "ما هي الكتب التي اشتريتها؟",
                "اشتريت كتابا عن الطيور",
                "ما هي هذه التي كانت هنا.",
            ),
            Case(
                "متى يغادر القطار؟",
                "القطارات تغادر في الثامنة",
                "متى كان ذلك ومن أين.",
            ),
            Case(
                "من أصلح الدراجة؟",
                "دراجتي أصلحها سامي",
                "من هو هذا الذي كان هنا.",
            ),
            Case(
                "ماذا تأكل القطط؟",
                "قطتي تحب التونة والقطط الأخرى السردين",
                "ماذا عن هذا.",
            ),
            Case(
                "أين المفتاح؟",
                "مفتاح البيت تحت السجادة",
                "أين هو وأين هي.",
            ),
            Case(
                "كم ثمن التذاكر؟",
                "ثمن التذكرة عشرة دنانير",
                "كم مرة كان هذا.",
            ),
            Case(
                "ما اسم الطبيب؟",
                "طبيبي اسمه خالد والطبيبة ليلى",
                "ما هذا وما ذلك.",
            ),
        ),
        "hindi": (
            Case(
                "मेरी बहनें कहाँ रहती हैं?",
                "मेरी बहन पुणे में है, बहनों का घर बड़ा है",
                "मेरी बात कहाँ तक है और क्या है.",
            ),
            Case(
                "मैंने कौन सी किताबें खरीदीं?",
                "मैंने पक्षियों पर एक किताब खरीदी",
                "मैंने कौन सा काम किया था.",
            ),
            Case(
                "रेलगाड़ी कब चलती है?",
                "रेलगाड़ियाँ आठ बजे चलती हैं",
                "यह कब था और क्या है.",
            ),
            Case(
                "साइकिल किसने ठीक की?",
                "साइकिलें मोहन ठीक करता है",
                "किसने क्या किया और कब.",
            ),
            Case(
                "चाबी कहाँ है?",
                "चाबियाँ दरी के नीचे हैं",
                "वह कहाँ है और क्यों.",
            ),
            Case(
                "टिकट कितने का है?",
                "टिकटों का दाम दस रुपये",
                "यह कितने दिन का है.",
            ),
            Case(
                "मेरी बिल्ली क्या खाती है?",
                "बिल्लियाँ मछली खाती हैं",
                "मेरी बात क्या है.",
            ),
            Case(
                "डॉक्टर का नाम क्या है?",
                "डॉक्टर शर्मा का नाम दीवार पर है",
                "यह क्या है और किस का है.",
            ),
        ),
        "hebrew": (
            Case(
                "איפה נמצאת הספרייה?",
                "ספרייה חדשה נמצאת ליד הפארק",
                "איפה זה היה ומי הוא.",
            ),
            Case(
                "אילו ספרים קניתי?",
                "קניתי ספר על ציפורים",
                "מה זה היה ומי היא.",
            ),
            Case(
                "מתי יוצאת הרכבת?",
                "רכבות יוצאות בשמונה, רכבת הלילה בעשר",
                "מתי זה היה ואיפה.",
            ),
            Case(
                "מי תיקן את האופניים?",
                "אופניים מתקן יוסי",
                "מי היה את זה.",
            ),
            Case(
                "איפה המפתח?",
                "מפתח הבית מתחת לשטיח",
                "איפה הוא ואיפה היא.",
            ),
            Case(
                "כמה עולה הכרטיס?",
                "כרטיס עולה עשרה שקלים",
                "כמה זה עם זה.",
            ),
            Case(
                "מה אוכל החתול?",
                "חתול שלי אוהב טונה",
                "מה זה ומה לא.",
            ),
            Case(
                "מי הרופאה שלי?",
                "רופאה טובה: דוקטור לוי",
                "מי זה שלי.",
            ),
        ),
        "chinese": (
            Case(
                "我的猫叫什么名字?",
                "我家的猫名字叫咪咪",
                "你叫什么,他在做什么.",
            ),
            Case(
                "我妹妹住在哪里?",
                "妹妹去年搬到成都住了",
                "你在哪里,他在哪里.",
            ),
            Case(
                "我买了哪些书?",
                "上周买了一本关于鸟的书",
                "我有哪些,你有哪些.",
            ),
            Case(
                "火车几点出发?",
                "火车八点出发",
                "现在是几点了.",
            ),
            Case(
                "谁修了自行车?",
                "自行车是小王修好的",
                "谁是这个人,谁不是.",
            ),
            Case(
                "钥匙在哪儿?",
                "钥匙放在地毯下面",
                "他在哪儿,我在哪儿.",
            ),
            Case(
                "我对什么过敏?",
                "花生让我过敏",
                "我对你说了什么.",
            ),
            Case(
                "服务器的密码是什么?",
                "服务器密码写在保险箱里",
                "他的是什么,我的是什么.",
            ),
        ),
        "japanese": (
            Case(
                "私の猫の名前は何ですか?",
                "猫の名前はタマです",
                "それは何ですか、これは何ですか.",
            ),
            Case(
                "妹はどこに住んでいますか?",
                "妹は仙台に住んでいる",
                "それはどこにありますか.",
            ),
            Case(
                "どの本を買いましたか?",
                "鳥についての本を買った",
                "どの日がいいですか.",
            ),
            Case(
                "電車はいつ出発しますか?",
                "電車は八時に出発する",
                "それはいつですか、何時ですか.",
            ),
            Case(
                "誰が自転車を修理しましたか?",
                "自転車は田中さんが修理した",
                "誰がそれを言いましたか.",
            ),
            Case(
                "鍵はどこにありますか?",
                "鍵はマットの下に置いた",
                "彼はどこにいますか.",
            ),
            Case(
                "パソコンのパスワードは何ですか?",
                "パスワードはパソコンの裏に書いてある",
                "今日の予定は何ですか.",
            ),
            Case(
                "何にアレルギーがありますか?",
                "ピーナッツのアレルギーを持っている",
                "何か予定がありますか.",
            ),
        ),
        "korean": (
            Case(
                "제 고양이 이름이 뭐예요?",
                "고양이는 나비라는 이름이 있어요",
                "이거 뭐예요, 저거 뭐예요.",
            ),
            Case(
                "여동생은 어디에 살아요?",
                "여동생이 부산에서 살고 있다",
                "우리는 어디에 있어요.",
            ),
            Case(
                "어떤 책을 샀어요?",
                "새에 관한 책이 책상에 있다",
                "어떤 날이 좋아요.",
            ),
            Case(
                "기차는 언제 출발해요?",
                "기차가 여덟 시에 출발한다",
                "그것은 언제예요.",
            ),
            Case(
                "누가 자전거를 고쳤어요?",
                "자전거는 민수가 고쳤다",
                "누가 그것을 했어요.",
            ),
            Case(
                "열쇠는 어디에 있어요?",
                "열쇠를 매트 아래에 두었다",
                "그는 어디에 있어요.",
            ),
            Case(
                "집에 언제 가요?",
                "집은 여섯 시에 간다",
                "언제 해요, 언제 안 해요.",
            ),
            Case(
                "서버 비밀번호가 뭐예요?",
                "비밀번호는 서버 뒤에 있다",
                "오늘 일정이 뭐예요.",
            ),
        ),
        "thai": (
            Case(
                "แมวของฉันชื่ออะไร",
                "แมวตัวนั้นชื่อว่าส้ม",
                "คุณทำอะไรอยู่ที่ไหน.",
            ),
            Case(
                "น้องสาวของฉันอยู่ที่ไหน",
                "น้องสาวย้ายไปเชียงใหม่",
                "เขาอยู่ที่ไหนแล้ว.",
            ),
            Case(
                "ฉันซื้อหนังสืออะไร",
                "ฉันซื้อหนังสือเรื่องนก",
                "ฉันทำอะไรอยู่.",
            ),
            Case(
                "รถไฟออกเมื่อไหร่",
                "รถไฟออกแปดโมง",
                "เขามาเมื่อไหร่.",
            ),
            Case(
                "ใครซ่อมจักรยาน",
                "จักรยานสมชายซ่อมให้",
                "ใครคือเขา ใครไม่ใช่.",
            ),
            Case(
                "กุญแจอยู่ที่ไหน",
                "วางกุญแจไว้ใต้พรม",
                "คุณอยู่ที่ไหน.",
            ),
            Case(
                "ฉันแพ้อะไร",
                "ถั่วลิสงทำให้แพ้",
                "ฉันชอบอะไร.",
            ),
            Case(
                "รหัสผ่านของเซิร์ฟเวอร์คืออะไร",
                "รหัสผ่านเซิร์ฟเวอร์อยู่ในตู้เซฟ",
                "นั่นคืออะไรของคุณ.",
            ),
        ),
        "vietnamese": (
            Case(
                "Con mèo của tôi tên là gì?",
                "Tên mèo nhà tôi: Mướp",
                "Cái này là gì, của ai.",
            ),
            Case(
                "Em gái tôi sống ở đâu?",
                "Em gái sống ở Huế",
                "Tôi ở đâu, nó ở đâu.",
            ),
            Case(
                "Tôi đã mua sách gì?",
                "Hôm qua mua quyển sách về chim",
                "Tôi đã làm gì khi đó.",
            ),
            Case(
                "Tàu khởi hành khi nào?",
                "Tàu khởi hành lúc tám giờ",
                "Khi nào là ngày đó.",
            ),
            Case(
                "Ai sửa xe đạp?",
                "Xe đạp do Minh sửa",
                "Ai là ai.",
            ),
            Case(
                "Chìa khóa ở đâu?",
                "Chìa khóa để dưới thảm",
                "Nó ở đâu rồi.",
            ),
            Case(
                "Vé giá bao nhiêu?",
                "Giá vé mười nghìn",
                "Có bao nhiêu người ở đó.",
            ),
            Case(
                "Mat khau may chu la gi?",
                "Mật khẩu máy chủ nằm trong két",
                "Cái đó là gì vậy.",
            ),
        ),
    }
)
"""By language."""
