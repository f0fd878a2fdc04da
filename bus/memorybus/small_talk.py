"""Recognises by its words alone what a prompt asks of memory; pure.

Some prompts ask for what is known of the person, and some only refer to an earlier prompt ("and
when was that?"): these name nothing to search for, and are asked together with the last prompt that
can be understood by itself. Some texts say nothing: they consist only of the words and phrases in
these tables: assent, thanks, greetings, "go on". A prompt like that asks nothing of memory, and
what was said like that is no memory. A text with any other word is neither, so the tables have no
word that a question may be about.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

_SIGNS = (
    r"\s.,;:!?…。、！？，'\"’)(¡¿«»“”~*،؟؛।—–\-" + "\u2190-\u2bff\ufe0f\u200d\U0001f000-\U0001faff"
)
_WORD = re.compile(f"[^{_SIGNS}]+")

_GREETING_WORDS = """
    hi hello hey hiya heya howdy yo greetings hallo hallöchen servus moin bonjour bonsoir salut
    coucou hola ciao buongiorno buonasera olá oi hej hei hoi goedemorgen goedemiddag goedenavond
    merhaba selam günaydın привет здравствуй здравствуйте привіт cześć 你好 您好 你好吗 早上好 早安
    晚上好 こんにちは こんばんは おはよう おはようございます 안녕 안녕하세요 สวัสดี สวัสดีครับ
    สวัสดีค่ะ مرحبا أهلا नमस्ते
"""

_GREETING_PHRASES = """
    good morning; good afternoon; good evening; good day; how are you; how are you doing;
    how are you today; how's it going; how is it going; how do you do; what's up; whats up;
    nice to meet you; nice to see you; good to see you; are you there; guten morgen; guten tag;
    guten abend; grüß gott; grüß dich; wie geht's; wie geht es dir; wie geht es ihnen;
    wie geht's dir; comment ça va; comment vas-tu; comment allez-vous; buenos días; buenos dias;
    buen día; buenas tardes; buenas noches; qué tal; que tal; cómo estás; como estas; cómo está;
    come stai; come va; buona sera; bom dia; boa tarde; boa noite; como vai; goede morgen;
    hoe gaat het; god morgon; god kväll; hur mår du; godmorgen; god morgen; hvordan går det;
    hvordan har du det; god dag; god kveld; iyi akşamlar; iyi günler; nasılsın; доброе утро;
    добрый день; добрый вечер; как дела; доброго ранку; добрий день; dzień dobry; dobry wieczór;
    jak się masz; co słychać; 좋은 아침; صباح الخير; مساء الخير; السلام عليكم; كيف حالك; शुभ प्रभात;
    सुप्रभात; कैसे हो; आप कैसे हैं
"""

_OTHER_WORDS = """
    ok okay okey okie k kk yes yeah yea yep yup aye no nope nah sure thanks thank thx ty tysm tnx
    cheers cool nice great good fine perfect perfectly excellent awesome amazing brilliant
    wonderful fantastic lovely got go continue proceed next done stop bye goodbye goodnight lol
    lmao haha hahaha hahahaha hehe hihi xd hm hmm hmmm mhm uh um oh ah aha wow yay oops y n please
    pls plz right correct exactly precisely agreed absolutely definitely totally certainly indeed
    alright understood noted gotcha roger lgtm nevermind whatever welcome ja jawohl jap jep nein nö
    nee danke dankeschön bitte gut super weiter genau tschüss tschüs klar natürlich gerne gern
    stimmt passt perfekt prima wunderbar verstanden verstehe okee richtig oui ouais non merci bien
    parfait génial compris exactement voilà sí si gracias vale bueno perfecto sigue adiós adios
    claro entendido entiendo genial estupendo excelente exacto correcto adelante continúa jaja
    jajaja sì grazie bene perfetto avanti certo ottimo esatto capito prego sim não nao obrigado
    obrigada ótimo perfeito entendi beleza valeu tchau exato tak nej tack takk okej precis
    självklart fortsätt bedankt dank dankjewel goed doei oké klopt begrepen graag alsjeblieft tamam
    evet hayır teşekkürler sağol lütfen harika anladım peki olur да нет спасибо спс хорошо ок пока
    дальше понятно понял поняла ясно отлично супер конечно ладно давай пожалуйста ага угу точно
    продолжай так ні дякую добре nie dzięki dziękuję dobrze jasne świetnie rozumiem oczywiście
    proszę dalej dokładnie 好 好的 好吧 是 是的 不 不是 不用 不用了 谢谢 謝謝 谢谢你 謝謝你 谢谢您
    好的谢谢 非常感谢 晚安 继续 繼續 嗯 对 对的 行 可以 没问题 沒問題 没关系 明白 明白了 知道了
    收到 当然 太好了 再试一次 不客气 哈哈 哈哈哈 はい うん ええ いいえ ありがとう
    ありがとうございます どうもありがとう どうも 続けて 続けてください 了解 了解です 了解しました
    わかりました 分かりました わかった 分かった お願いします はいお願いします 大丈夫 大丈夫です
    いいですね いいね なるほど もう一度 네 예 응 아니요 아니 고마워 고마워요 감사합니다 계속 계속해
    계속해줘 좋아 좋아요 그래 그래요 알겠어요 알겠습니다 괜찮아요 맞아요 부탁해요 부탁합니다 ใช่ ไม่
    ขอบคุณ ขอบคุณครับ ขอบคุณค่ะ ขอบคุณมาก โอเค ตกลง ได้เลย نعم لا شكرا شكراً حسنا تمام طيب हाँ हां जी नहीं
    धन्यवाद शुक्रिया अच्छा ठीक notiert vermerkt gemerkt anotado apuntado noté записал записала принято
    записано понимаю anlaşıldı anlıyorum onaylandı 我明白了 我知道了 原来如此 记下了 已记下 已记录
    好呀 嗯嗯 哦 承知しました かしこまりました メモしました 記録しました 覚えました そうですか
    そうなんですね 그렇군요 메모했습니다 메모했어요 기록했습니다 기억할게요 기억하겠습니다 รับทราบ
    รับทราบครับ รับทราบค่ะ เข้าใจ เข้าใจแล้ว เข้าใจแล้วครับ เข้าใจแล้วค่ะ จดไว้แล้ว فهمت مفهوم علم ممتاز bravo
"""

_OTHER_PHRASES = """
    makes sense; makes total sense; makes perfect sense; that works; it works; never mind;
    try again; try it again; try that again; once more; one more time; do it; do that; do this;
    do so; just do it; go for it; go ahead; carry on; keep going; let's go; let's do it;
    let's do that; i see; i understand; i agree; i like it; love it; i love it; of course;
    no problem; no worries; not bad; not now; not yet; not really; you're welcome; my pleasure;
    me too; that's it; that's all; that's enough; all set; well done; very well; good job;
    great job; nice job; good work; great work; nice work; good idea; great idea; fair enough;
    why not; take care; see you; see ya; so far so good; forget it; works for me; looks good to me;
    for your help; for the help; a lot; a bunch; good night; have a good day; have a nice day;
    have a great day; danke schön; vielen dank; vielen lieben dank; besten dank; herzlichen dank;
    mach das; mach das mal; mach weiter; mach mal; mach es; klingt gut; klingt super;
    hört sich gut an; kein problem; keine ursache; vergiss es; schon gut; noch einmal; nochmal;
    versuch es nochmal; versuch's nochmal; versuch es noch einmal; auf jeden fall; na klar;
    macht sinn; ergibt sinn; los geht's; gute nacht; schönen tag noch; bis bald; bis später;
    bis dann; in ordnung; so ist es; das war's; d'accord; ça marche; ça va; c'est bon;
    c'est parfait; c'est ça; c'est bien; vas-y; allez-y; pas de problème; pas de souci; je vois;
    je comprends; bien sûr; laisse tomber; tant pis; encore une fois; s'il te plaît; s'il te plait;
    s'il vous plaît; s'il vous plait; de rien; bonne nuit; bonne journée; bonne soirée; au revoir;
    à bientôt; à demain; fais ça; fais-le; tu vas bien; de acuerdo; está bien; suena bien;
    tiene sentido; claro que sí; por supuesto; por favor; hazlo; haz eso; muy bien; no importa;
    olvídalo; inténtalo de nuevo; otra vez; una vez más; hasta luego; hasta mañana; de nada;
    sin problema; no hay problema; va bene; molto bene; tutto bene; va benissimo; grazie mille;
    non importa; per favore; ho capito; di nuovo; buona notte; buona giornata; a presto;
    nessun problema; ha senso; suona bene; está bem; tudo bem; tudo bom; muito bem; faz sentido;
    faça isso; de novo; tente novamente; sem problema; sem problemas; não importa; pode ser;
    até logo; isso mesmo; soa bem; dank je; dank je wel; dank u; dank u wel; ga door; klinkt goed;
    geen probleem; doe dat; doe dat maar; laat maar; tot ziens; heel goed; nog een keer;
    tack så mycket; tusen tack; det låter bra; låter bra; bra tack; gör det; inga problem;
    mange tak; tusind tak; tak skal du have; lyder godt; det lyder godt; gør det; tusen takk;
    takk skal du ha; høres bra ut; det høres bra ut; gjør det; çok teşekkürler; teşekkür ederim;
    çok teşekkür ederim; sağ ol; iyi geceler; devam et; sorun değil; boş ver; tekrar dene; çok iyi;
    çok güzel; mantıklı; большое спасибо; спасибо большое; спокойной ночи; не надо; не важно;
    неважно; попробуй ещё раз; попробуй еще раз; ещё раз; еще раз; сделай это; звучит хорошо;
    до свидания; без проблем; очень хорошо; dobranoc; w porządku; nie ma sprawy; nieważne;
    spróbuj ponownie; jeszcze raz; zrób to; brzmi dobrze; ma sens; do widzenia; bardzo dziękuję;
    dziękuję bardzo; bardzo dobrze; 다시 해줘; 정말 고마워; 정말 감사합니다; 문제 없어요; من فضلك;
    شكرا جزيلا; ठीक है; बहुत धन्यवाद; बहुत अच्छा; will do; you bet; sure thing; good to know;
    how lovely; how nice; how wonderful; how exciting;
    good point; good call; duly noted; got you; sounds like a plan; no rush; i'll remember that;
    i will remember that; i'll remember it; i'll keep that in mind; i will keep that in mind;
    i've noted that; i have noted that; i've made a note of that; happy to help; glad to help;
    glad i could help; glad to hear that; good to hear; great to hear; i'm here to help;
    how can i help; how can i help you; how may i help you; how can i help you today;
    how can i assist you; how can i assist you today; what can i do for you; anything else;
    is there anything else; is there anything else i can help you with;
    is there anything else i can help with; let me know if you need anything else;
    let me know if you have any questions; let me know if you have any other questions;
    thanks for letting me know; thank you for letting me know; ich verstehe; verstehe ich;
    gern geschehen; gerne geschehen; das merke ich mir; ich merke es mir; ich merke mir das;
    ist notiert; habe ich notiert; hab ich notiert; gut zu wissen; wird gemacht;
    wie kann ich helfen; wie kann ich dir helfen; wie kann ich ihnen helfen; sonst noch etwas;
    kann ich sonst noch helfen; c'est noté; bien noté; je note; avec plaisir; je m'en souviendrai;
    comment puis-je vous aider; comment puis-je t'aider; ya veo; lo entiendo; tomo nota;
    tomado nota; lo recordaré; en qué puedo ayudarte; con gusto; not aldım; not ettim; rica ederim;
    nasıl yardımcı olabilirim; я понимаю; я понял; я поняла; я запомню; буду знать; не за что;
    чем могу помочь; تم التسجيل; على الرحب والسعة; كيف يمكنني مساعدتك
"""

_FILLER_WORDS = """
    you it that this on ahead so much very really all for me one too then now just do i m s we re
    there again and everyone dude guys works sounds looks not with alles das es dir euch ihnen sehr
    dann mir doch so mal noch mach und zusammen toll beaucoup très toi vous alors ça c est et mille
    muy mucho mucha muchas muchísimas todo eso ti y molto mille a te e tutto così muito muita isso
    você je wel zeer hoor maar så mycket meget mye det çok bu очень это тебе вам и bardzo to ci
    ครับ ค่ะ है
"""

_PROFILE_PHRASES = """
    what do you know about me; what do you know of me; what do you remember about me;
    what do you remember of me; what do you recall about me; what do you have on me;
    what do you have about me; what have you learned about me; what have you learnt about me;
    what have you remembered about me; what have you stored about me; what have you saved about me;
    what have you noted about me; what did you learn about me; what can you tell me about me;
    what can you tell me about myself; what can you say about me; what is known about me;
    what's in your memory; what is in your memory; what's in your memory about me;
    what is in your memory about me; what do you remember; what do you know;
    what you know about me; what you remember about me; tell me what you know about me;
    tell me what you remember about me; tell me about me; tell me about myself;
    tell me everything you know about me; tell me all you know about me;
    tell me something about me; show me what you know about me; show me what you remember about me;
    list what you know about me; summarize what you know about me;
    summarise what you know about me; how much do you know about me; how well do you know me;
    do you know me; do you know who i am; do you know anything about me;
    do you know something about me; do you remember me; do you remember anything about me;
    do you remember who i am; you remember me; remember me; who am i; who i am;
    who do you think i am; have we met; have we met before; have we talked before;
    have we spoken before; can you remember me; can you tell me who i am; tell me who i am;
    describe me; show me my profile; what is my profile; what are my preferences;
    what are my standing instructions; was weißt du über mich; was weisst du über mich;
    was weißt du von mir; was wissen sie über mich; was weißt du; woran erinnerst du dich;
    an was erinnerst du dich; was hast du dir gemerkt; was hast du dir über mich gemerkt;
    was hast du über mich gespeichert; was hast du über mich gelernt; wer bin ich;
    weißt du wer ich bin; wissen sie wer ich bin; erinnerst du dich an mich;
    erinnern sie sich an mich; kennst du mich; kennen sie mich; sag mir was du über mich weißt;
    erzähl mir was du über mich weißt; was kannst du mir über mich sagen; kennen wir uns;
    que sais-tu de moi; que sais-tu sur moi; qu'est-ce que tu sais de moi;
    qu'est-ce que tu sais sur moi; que savez-vous de moi; que savez-vous sur moi;
    tu sais quoi sur moi; qui suis-je; tu te souviens de moi; te souviens-tu de moi;
    vous souvenez-vous de moi; est-ce que tu te souviens de moi; de quoi te souviens-tu;
    tu me connais; me connais-tu; sais-tu qui je suis; qué sabes de mí; que sabes de mi;
    qué sabes sobre mí; que sabes sobre mi; qué recuerdas de mí; que recuerdas de mi;
    qué recuerdas sobre mí; quién soy; quien soy; quién soy yo; quien soy yo; te acuerdas de mí;
    te acuerdas de mi; me recuerdas; me conoces; sabes quién soy; sabes quien soy; cosa sai di me;
    che cosa sai di me; che sai di me; chi sono; chi sono io; ti ricordi di me; cosa ricordi di me;
    mi conosci; sai chi sono; o que você sabe sobre mim; o que sabe sobre mim;
    o que sabes sobre mim; quem sou eu; você se lembra de mim; lembra de mim; lembras-te de mim;
    wat weet je over mij; wie ben ik; herinner je je mij; ken je mij; benim hakkımda ne biliyorsun;
    hakkımda ne biliyorsun; hakkımda neler biliyorsun; benim hakkımda neler biliyorsun; ben kimim;
    beni hatırlıyor musun; beni tanıyor musun; что ты знаешь обо мне; что ты обо мне знаешь;
    что вы знаете обо мне; что ты помнишь обо мне; что ты обо мне помнишь; кто я; кто я такой;
    кто я такая; ты меня помнишь; ты помнишь меня; вы меня помните; ты меня знаешь; 你知道我什么;
    你对我了解多少; 你了解我吗; 你记得我吗; 你还记得我吗; 你認識我嗎; 你認得我嗎; 你還記得我嗎;
    你认识我吗; 我是谁; 我是誰; 你记得我什么; 你记得关于我的什么; 你知道关于我的什么;
    关于我你知道什么; 关于我你知道些什么; 你知道我是谁吗; 你知道我的什么; 私のことを覚えていますか;
    私のことを覚えてる; 私のことを覚えてますか; 私のこと覚えてる; 私を覚えていますか; 私は誰;
    私は誰ですか; 私が誰かわかりますか; 私について何を知っていますか; 私について何を覚えていますか;
    私について何を知ってる; 私のことを知っていますか; 僕は誰; 俺は誰; 僕のこと覚えてる;
    저를 기억하세요; 저를 기억하시나요; 나를 기억해; 나를 기억하니; 나 기억해; 나 기억나;
    나에 대해 뭘 알아; 나에 대해 무엇을 알아; 나에 대해 무엇을 알고 있어;
    저에 대해 무엇을 알고 있나요; 저에 대해 뭘 알고 있나요; 나는 누구야; 내가 누구야;
    내가 누군지 알아; 제가 누구예요; 제가 누구인지 아세요; 저를 아세요; คุณรู้อะไรเกี่ยวกับฉันบ้าง;
    คุณรู้อะไรเกี่ยวกับฉัน; คุณรู้อะไรเกี่ยวกับผมบ้าง; คุณจำฉันได้ไหม; คุณจำผมได้ไหม; จำฉันได้ไหม; จำผมได้ไหม;
    ฉันคือใคร; ฉันเป็นใคร; ผมคือใคร; ผมเป็นใคร; คุณรู้จักฉันไหม; ماذا تعرف عني; ما الذي تعرفه عني;
    ماذا تتذكر عني; من أنا; من انا; هل تتذكرني; هل تعرفني; هل تذكرني
"""

_FUNCTION_WORDS = """
    a about actually after again ago all already also an and another any are at back be because been
    before both but by can could d did do does done earlier else ever exactly far few first for from
    had has have here how i if in into is just last later less ll long longer m many may me mean
    might more most much my next no not now of often old on only or other our out over own re really
    s same since so some soon still such t than the then there these this till to too until up
    us ve was we were what when where which while who whom whose why will with would you your
    aber andere anderen auch da dann das dem den denn der die dies diese dort ein eine hat hatte
    haben ist jetzt lange mehr noch nochmal oder oft sind und viel viele von wann war waren warum
    was welche welcher welches wer wie wieso wo
    autre avait c ce cette combien d de en encore est et eu l la le les là mais maintenant ou où
    plus pourquoi quand quel quelle qui quoi s sont t un une y était
    ahora ahí al allí cuál cuándo cuánta cuántas cuánto cuántos de del dónde el entonces era es
    eran esta este fue fueron las les lo los más o otra otro pero por qué quién son un una
    agora ainda allora altra altro che chi com cosa da do dove e então era foi ma mas mais o onde
    ora os outro outra perché più poi porque qual quale quando quanta quante quanti quanto quello
    quem questa questo quê sono são um uma lá lì è é
    daar dan dat de dit een en het hoe hoeveel maar meer nog nu waar waarom wanneer wat welke wie
    zijn
"""
_FUNCTION: Final = frozenset(_FUNCTION_WORDS.split())
"""Words that say nothing by themselves."""

_POINTING_WORDS = """
    he her hers him his it its one ones she that their theirs them they those
    dafür damit darüber davon dazu er es ihm ihn ihr ihre sein seine sie
    cela elle elles il ils leur lui ça
    ella ellas ello ellos eso esto su él
    ela ele elas eles isso isto lei loro lui
    haar hem hij ze zij
"""
_POINTING: Final = frozenset(_POINTING_WORDS.split())
"""Words that stand for something or somebody named before."""

_PERSON_WORDS = "he her him she er ihm ihn sie elle il lui él ella lei ela ele hij hem zij"
_PERSONS: Final = frozenset(_PERSON_WORDS.split())
"""Words that stand for somebody: with one, a prompt may have more other words and still refer back.
"""

_MEANINGLESS: Final = _FUNCTION | _POINTING
_MAX_TOPIC_CHARS = 500
"""The most characters of the topic that is asked with a prompt that refers back."""

_MAX_TELLING_WORDS = 2
"""The most words with a meaning of their own in a prompt that refers back."""

_END_SIGNS = " ?!."
_PLAIN_WORD = re.compile(r"[^\W_]+")


def _read(entries: Iterable[str]) -> frozenset[str]:
    return frozenset(" ".join(_WORD.findall(entry.casefold())) for entry in entries)


_GREETINGS: Final = _read(_GREETING_WORDS.split()) | _read(_GREETING_PHRASES.split(";"))
_TRIVIAL: Final = _GREETINGS | _read(_OTHER_WORDS.split()) | _read(_OTHER_PHRASES.split(";"))
"""Words and phrases that say nothing, alone or together."""

_FILLERS: Final = _read(_FILLER_WORDS.split())
"""Words that add nothing to the others. Without these they may ask something: "and you?"."""

_PROFILE: Final = _read(_PROFILE_PHRASES.split(";"))
"""Questions for what is known of the person who asks."""

_ADVERBS: Final = re.compile(
    r"\b(?:still|already|actually|really|exactly|so far|by now|noch|schon|eigentlich|genau|bisher"
    r"|encore|déjà|todavía|aún|ya|ancora|ainda|hâlâ|ещё|еще|уже)\b",
    re.IGNORECASE,
)
"""What may stand anywhere in such a question."""

_PHRASES: Final = _TRIVIAL | _FILLERS | _PROFILE
_KNOWN: Final = frozenset(" ".join(_PHRASES).split())
_MOST_WORDS: Final = max(phrase.count(" ") for phrase in _PHRASES) + 1
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]+")
_RUN: Final = re.compile(
    "|".join(sorted(filter(_UNSPACED.fullmatch, _PHRASES), key=len, reverse=True))
)
"""The words of scripts that write no spaces: "好的谢谢"."""

_MAX_PROMPT_CHARS = 50
_MAX_CHARS = 200
"""The most characters of a prompt that asks nothing or refers back; of a text that says nothing."""

PromptKind = Literal["blank", "trivial", "greeting", "profile", "follow-up", "question"]
"""``blank``: no text; ``trivial``: it asks nothing; ``greeting``: it only greets; ``profile``: it
asks for what is known of the person; ``follow-up``: it only refers to an earlier prompt."""

UNASKED: Final[frozenset[PromptKind]] = frozenset({"blank", "trivial", "greeting"})
"""The kinds of prompts that ask nothing of memory."""


def kind_of(prompt: str) -> PromptKind:
    """Return what a prompt asks of memory.

    >>> [kind_of(prompt) for prompt in ("Yes, please!", "/help", "Hi there", "Who am I?")]
    ['trivial', 'trivial', 'greeting', 'profile']
    >>> [kind_of(prompt) for prompt in ("and when was that?", "yes, book the hotel")]
    ['follow-up', 'question']
    """
    text = prompt.strip()
    if not text:
        return "blank"
    phrases, plain = _phrases_in(text), _ADVERBS.sub("", text)
    if not _PROFILE.isdisjoint(phrases if plain == text else _phrases_in(plain)):
        return "profile"
    if _say_nothing(phrases, text):
        if not _GREETINGS.isdisjoint(phrases):
            return "greeting"
        if len(text) <= _MAX_PROMPT_CHARS:
            return "trivial"
    return "trivial" if text[0] == "/" else "follow-up" if points_back(text) else "question"


def says_nothing(text: str) -> bool:
    """Return whether a text is no memory: it greets, thanks or assents, or has no word at all.

    >>> says_nothing("Noted."), says_nothing("Noted: the dentist is on Monday.")
    (True, False)
    """
    return _say_nothing(_phrases_in(text), text)


def _say_nothing(phrases: Sequence[str], text: str) -> bool:
    if _TRIVIAL.isdisjoint(phrases):
        return not any(map(str.isalnum, text))
    return _PROFILE.isdisjoint(phrases)


def asks_for_profile(prompt: str) -> bool:
    """Return whether a prompt asks what is known of the person, and nothing more particular.

    >>> asks_for_profile("Hi! What do you know about me?"), asks_for_profile("What do I like?")
    (True, False)
    """
    return kind_of(prompt) == "profile"


def _phrases_in(text: str) -> Sequence[str]:
    """Return the known phrases of which a short text consists; none if it has other words."""
    if len(text) > _MAX_CHARS:
        return ()
    words: list[str] = []
    for match in _WORD.finditer(text.casefold()):
        word = match[0]
        if word in _KNOWN:
            words.append(word)
        elif _UNSPACED.fullmatch(word) and not _RUN.sub("", word):
            words += _RUN.findall(word)
        elif any(map(str.isalnum, word)):  # nearly every text ends here
            return ()
    return _phrases_of(words)


def _phrases_of(words: Sequence[str]) -> list[str]:
    """Return the phrases of which words consist, the longest ones; none if words are left over."""
    phrases, at = [], 0
    while at < len(words):
        most = min(_MOST_WORDS, len(words) - at)
        spans = (" ".join(words[at : at + size]) for size in range(most, 0, -1))
        phrase = next((span for span in spans if span in _PHRASES), None)
        if phrase is None:
            return []
        phrases.append(phrase)
        at += phrase.count(" ") + 1
    return phrases


def points_back(prompt: str) -> bool:
    """Return whether a prompt refers to an earlier one.

    It does if it has no word with a meaning of its own ("how much was it?"), or only one together
    with a word that stands for something else ("is that red?"), or at most two together with a word
    that stands for somebody ("does she have a phone number?").
    """
    if len(prompt) > _MAX_PROMPT_CHARS:
        return False
    words = prompt.casefold().rstrip(_END_SIGNS).split()
    telling = plain = 0
    for word in words:
        if word.isalpha():
            plain += 1
            if word not in _MEANINGLESS:
                telling += 1
                if telling > _MAX_TELLING_WORDS:  # nearly every prompt ends here
                    return False
    if plain < len(words):
        words = _PLAIN_WORD.findall(prompt.casefold())
        telling = sum(word not in _MEANINGLESS for word in words)
    most = (
        0
        if _POINTING.isdisjoint(words)
        else 1
        if _PERSONS.isdisjoint(words)
        else _MAX_TELLING_WORDS
    )
    return bool(words) and telling <= most


def with_topic(prompt: str, topic: str) -> str:
    """Return a prompt that refers back, together with the prompt to which it refers.

    Args:
        prompt: what the person said.
        topic: the last prompt that can be understood by itself, or "".
    """
    return f"{topic[:_MAX_TOPIC_CHARS]}\n{prompt}" if topic else prompt
