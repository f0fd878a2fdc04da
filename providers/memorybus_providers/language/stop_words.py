"""Lists words that say nothing about what is asked for, by language; `english` has English ones.

They also show in which language a question is asked. Each language has the name of its stemmer, if
it has one. No list here is taken from a data set.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from memorybus_providers.language.words import folded

_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "german": """
            aber als am an auch auf aus bei beim bin bist da damit das dass dein deine deinem
            deinen deiner dem den denn der des die dies diese dieser dieses dir doch du durch
            ein eine einem einen einer eines er es für gegen gibt habe haben hast hat hatte
            hätte heißt hier ich ihm ihn ihr ihre ihrem ihren ihrer im in ins ist ja kann kannst
            kein keine mal man mein meine meinem meinen meiner meines mich mir mit nach nicht
            noch nun nur ob oder ohne schon sein seine seinem seinen seiner seit sich sie sind
            so über um und uns unser unsere unter vom von vor wann war waren warum was welche
            welchem welchen welcher welches wem wen wenn wer werden wessen wie wieder wir wird
            wo woher wohin wurde zu zum zur
        """,
        "french": """
            à ai as au aux avec ça ce ces cet cette ceux chez comme comment dans de des depuis
            dont du elle elles en es est et étais était été être eu il ils j je l la le les leur
            leurs lui m ma mais me mes moi mon n ne nos notre nous on ont ou où par pas plus
            pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses
            si son sont sous sur t ta te tes toi ton tu un une vers vos votre vous y combien
        """,
        "spanish": """
            a al algo como cómo con cual cuál cuáles cuando cuándo cuánto cuántos de del desde
            donde dónde el él ella ellos en era es esa ese eso esta está estaba estar este esto
            fue fui ha había han hay he la las le les lo los me mi mis muy nada no nos nosotros
            nuestra nuestro o para pero por porque qué que quien quién se sea ser si sí sin
            sobre son soy su sus también te ti tiene tengo tienes tu tú tus un una uno unos y ya
            yo
        """,
        "italian": """
            a ad ai al alla alle allo anche avere c che chi ci come con cosa cui d da dal dalla
            dei del della delle dello di dove e è ed era essere fa gli ha hai hanno ho i il in
            io l la le lei li lo loro lui ma me mi mia mie miei mio ne nei nel nella no noi non
            nostra nostro o per perché più qual quale quali quando quanti quanto quella quello
            questa questo qui se sei si sia siamo sono sta sto su sua sue suo sul sulla suoi te
            ti tra tu tua tue tuo un una uno vi
        """,
        "portuguese": """
            a ao aos as à às até com como da das de dele dela do dos e é ela ele eles em era
            essa esse está estava este esta eu foi há isso já lhe mais mas me meu meus minha
            minhas muito na não nas nem no nos nós o onde os ou para pela pelo por porque qual
            quais quando quanto quantos que quê quem se sem ser seu seus são só sou sua suas
            também te tem tenho ter teu tu tua um uma você vocês
        """,
        "dutch": """
            aan als bij ben bent dan dat de den deze die dit doen door dus een en er geen had
            heb hebben hebt heeft hem het hier hij hoe hoeveel hun ik in is ja je jij jou jouw
            kan kun maar me met mij mijn moet na naar niet nog nu of om omdat onder ons onze ook
            op over te ten tot u uit uw van veel voor waar waarom wanneer was wat we welk welke
            werd wie wij wil worden zal ze zich zij zijn zo
        """,
        "swedish": """
            alla att av blev bli blir de dem den denna deras dess det detta dig din dina ditt du
            där då efter eller en er ett för från ha hade han hans har henne hennes hon honom
            hur här i inte jag kan man med mellan men mig min mina mitt mot mycket ni nu när
            någon något några och om oss på sedan sig sin sina sitt skall ska som så till under
            upp ut vad var vara varför vem vi vid vilka vilken vilket vår våra är
        """,
        "danish": """
            af alle at blev blive bliver da de dem den denne der deres det dette dig din dine
            dit dog du efter eller en end er et for fra ha han hans har havde hende hendes her
            hos hun hvad hvem hvilke hvilken hvilket hvis hvor hvordan hvorfor hvornår i ikke
            ind ja jeg kan man med meget men mig min mine mit mod nej noget nogle nu når og også
            om op os over på sig sin sine skal som til ud under var ved vi vil vores være været
        """,
        "norwegian": """
            alle at av ble bli blir da de dem den denne der deres det dette deg din dine ditt du
            eller en enn er et etter for fra ha hadde han hans har hennes her hos hun hva hvem
            hvilke hvilken hvilket hvor hvordan hvorfor i ikke inn jeg kan man med meg meget men
            min mine mitt mot noe noen nå når og også om opp oss over på seg sin sine skal som
            til ut under var ved vi vil vår våre være vært
        """,
        "finnish": """
            ei että en ennen he hän hänen häntä ja jo joka jos jotka kanssa kuin kuka ketä kenen
            kun me meidän mihin mikä mikään mille millainen milloin minkä minua minulla minun
            minut minä missä mistä mitä miten miksi mutta myös ne niin nyt näin olen oli olin
            olit olla ole on onko ovat se sen siitä siinä sinun sinä sitä tai tämä tämän te vai
            vain voi
        """,
        "hungarian": """
            a abban ahhoz akkor alatt által általában amely ami ami az azt azzal be ből csak de
            e egy egyik el én engem ennek és ez ezt fel ha hány hanem hogy hogyan hol honnan
            hova hová így igen is itt ki kik kit le lesz mert meg meddig mely melyik mi miért
            mikor milyen mint mit mivel most nagyon ne nekem nem neki nincs ő ők őt pedig s sem
            ti több te tól van vagy vagyok volt volna
        """,
        "romanian": """
            a acea acest această aceasta acesta ai al ale am ar are as au avea că când câte câți
            care ce cei cel cine cu cum cât da dar de decât deci din după e ea ei el ele era
            este eu face fi fost iar îi îl îmi în își la lângă le lor lui mai mea mei mele meu
            mi ne nici noi nostru nu o or pe pentru prin sa să sale sau se și sunt ta tău te ți
            tu un una unde unei unui va voi vor
        """,
        "turkish": """
            acaba ama ancak ben bana beni benim bir biri biz bizim bu buna bunu çok çünkü da
            daha de değil diye en gibi hangi hem hep her hiç için ile ise kadar ki kim kimi
            kimin mı mi mu mü nasıl ne neden nerede nereden nereye ne zaman niçin o olan olarak
            oldu on ona onu onun sana seni senin sen siz sizin şey şu tüm var ve veya ya yok
        """,
        "polish": """
            a aby albo ale bardzo bez będzie być był była było były bo by ci co czego czemu czy
            czym dla do gdy gdzie i ich ile im ja jak jaka jaki jakie jako je jednak jego jej
            jest jestem jeszcze już kiedy kim kto kogo którą która które którego której który ma
            mam masz mi mnie moja moje moim mój mojego mojej mojemu na nad nam nas nasz nic nie
            nim niż o od on ona oni ono oraz po pod przed przez przy sa są się skąd ta tak także
            tam te tego tej ten to tobie twoja twój ty tych tylko tym u w we więc wszystko z za
            ze że
        """,
        "czech": """
            a aby ale ani ano asi až být byl byla bylo byli bez co což či do ho i ja já jak jaká
            jaké jaký jako je jeho její jejich jen ještě jestli jsem jsi jsme jsou jste k kam
            kde kdo kdy když která které který kolik ku ma má mám máš me mé mě mi mne mně moje
            mou můj může my na nad nám nás náš ne nebo není nic než o od on ona oni po pod podle
            pro proč proto před při s se si svůj ta tak také te tě ten tento to toho tom tomu tu
            tvůj ty u už v vám váš ve však z za ze že
        """,
        "indonesian": """
            ada adalah aku anda apa apakah atau bagaimana bahwa banyak belum berapa bisa dalam
            dan dari dengan di dia harus ia ini itu jika juga kami kamu kapan karena kata ke
            kepada kita lagi lalu mana mereka mengapa nya oleh pada para pernah saat saja sangat
            saya sebagai seperti siapa sudah tapi telah tentang tetapi tidak untuk yang
        """,
        "catalan": """
            a al als amb aquest aquesta això com d de del dels des el els em en ens era és ets
            fa ha he hi i jo l la les li lo m ma mai més meu meva molt n ni no nosaltres o on
            per perquè però qual quan quant què que qui s sa seu seva si són sóc t te teu teva
            tu un una vas va vaig
        """,
        "vietnamese": """
            ai anh ấy bà bao bị bởi các cái cho chúng có cô con của cũng đã đang đâu để đến đi
            đó được em gì giờ hay hoặc khi không là làm lại mà mình một này nào nếu ngày như
            nhiều những nhưng nó ở ông ra rằng rất sao sẽ ta tại thì tôi từ và vào về với
        """,
        "russian": """
            а без более бы был была были было быть в вам вас весь во вот все всё вы где да для
            до его ее её если есть ещё же за зачем здесь и из или им их к как какая какие какого
            каком какой какую ко когда кого кому кто куда ли меня мне мной много мой моей моего
            моём моём мои моя моё моём мою мы на над нам нас наш не него нее нет ни них но ну о
            об он она они от откуда очень по под почему при про с сам свой своей свою своих себя
            со сколько так там твой те тебе тебя тем то того тоже той только том ты у уже чего
            чей чем что чтобы эта эти это этого этой этот я
        """,
        "ukrainian": """
            а але б без би бо був була були було бути в вас вже ви від він вона вони все де для
            до його її є ж за зі з із і й й й їх коли кого кому куди ми мене мені мій моя моє
            мої моєї моїй мого на над нам нас наш не ні ну о об скільки та так там те ти то того
            той тут у хто це цей ці ця чи чим чого чому що щоб я як яка яке який які якого якій
            якому якою якою
        """,
        "greek": """
            αλλά αν από απο αυτά αυτή αυτό αυτός για γιατί δε δεν εγώ είμαι είναι εκεί ένα ένας
            εσύ έχει έχω ή η ήταν θα και κάθε κατά με μας μη μην μια μου να ο οι όπως όταν ότι
            ποια ποιο ποιος ποιον πόσα πόσο που πού πως πώς πότε σας σε στα στη στην στις στο
            στον στους τα τη την της τι τις το τον του τους των ως
        """,
        "arabic": """
            إلى ألا أم أن أنا أنت أو أي أين إن إذا التي الذي به بعد بين ثم حتى حيث ذلك على عن
            عند عندما عندي غير فى في قبل قد كان كانت كل كم كيف لا لدي لقد لك لم لماذا لن له لها
            لي ليس ما ماذا متى مثل مع من منذ نحن هذا هذه هل هم هنا هناك هو هي وهو وهي يا
        """,
        "persian": """
            آن آنها از است اما او اگر این با باید بر برای بود بودم به بی تا تو تی چرا چطور چند
            چه چی خود در را شد شده شما کجا کجاست کدام کرد کردم کرده کسی که کی ما من می نه نمی ها
            های هر هست هستم هم و یا یک
        """,
        "hindi": """
            अपना अपनी अपने आप इस उस उसका उसकी उसके एक और कब कर करता करती करते करना करने कहाँ
            कहां का कि किस किसने किसी की के को कौन कौनसा क्या क्यों कितना कितनी कितने कैसे जब जो
            तक तो था थी थे दिया ने पर बहुत भी मुझे में मेरा मेरी मेरे मैं मैंने यह या ये रहा रही
            रहे लिए वह वे वो सा से हम हमारा हमारी हमारे ही हुआ हुई हूँ हूं है हैं हो
        """,
        "hebrew": """
            אבל או אותה אותו אותי אחרי איזה איזו איך אין איפה אל אלה אם אני אנחנו את אתה גם של
            הוא היא הם היה היו הייתה הן זאת זה זו יש כי כל כמה כן לא לאן לו לי לך למה לפני מאוד
            מאין מה מי מן מתי עד על עם עכשיו רק שלו שלה שלי שלך שלנו
        """,
        "korean": """
            나 내 제 저 너 네 우리 그 이 저희 것 거 수 때 뭐 뭘 무엇 무슨 어디 언제 누구 누가 왜
            어떻게 어떤 어느 몇 얼마 얼마나 있 없 하 했 해 되 그리고 그래서 하지만
        """,
    }
)

BY_LANGUAGE: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        language: frozenset(folded(word) for word in words.split())
        for language, words in _WORDS.items()
    }
)
"""The words of each language, without diacritics."""

_RUNS = """
    什么 怎么 怎样 为什么 哪里 哪儿 哪个 哪些 哪天 谁 哪 几 多少 我们 你们 他们 她们 我 你 他 她
    它 的 了 是 在 吗 呢 吧 啊 和 与 也 都 就 很 有 没有 不 这个 那个 这 那 时候 一个 个 最 把
    被 给 对 从 到 着 过 会 什麼 怎麼 為什麼 哪裡 誰 幾 我們 你們 他們 嗎 這個 那個 這 沒有 時候
    個 們 们 何 どこ 誰 だれ いつ なぜ どうして どう どの どれ どんな いくつ いくら これ それ
    あれ この その あの 私 わたし 僕 俺 彼女 彼 です ます でした ました ません ですか ますか
    ましたか する した して います いました いる いた ある あった ない から まで という こと
    もの さん ちゃん のは のが には では とは って だった を อะไร ที่ไหน ไหน เมื่อไหร่ เมื่อไร
    ใคร ทำไม อย่างไร ยังไง เท่าไหร่ เท่าไร กี่ ฉัน ผม ดิฉัน เขา เธอ คุณ เรา ของ ที่ และ หรือ แต่
    เป็น อยู่ คือ มี ไม่ ไม่ได้ ได้ ให้ กับ ใน จะ แล้ว นี้ นั้น ก็ ว่า ไหม มั้ย ครับ ค่ะ คะ การ
    ความ จาก ไป มา អ្វី ណា ខ្ញុំ របស់ ဘာ ဘယ် ဘယ်မှာ ຫຍັງ ໃສ ຂ້ອຍ ຂອງ
"""
OF_RUNS: Final = tuple(sorted(map(folded, _RUNS.split()), key=len, reverse=True))
"""Words of scripts without spaces, the longest first."""
