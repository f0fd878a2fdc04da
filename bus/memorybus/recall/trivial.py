"""Recognises prompts that ask nothing of memory: assent, thanks, greetings, "go on"; pure.

Such a prompt consists only of the words and phrases in these tables. A prompt with any other word
is asked, so the tables have no word that a question may be about.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

_SIGNS = (
    r"\s.,;:!?…。、！？，'\"’)(¡¿«»“”~*،؟؛।—–\-" + "\u2190-\u2bff\ufe0f\u200d\U0001f000-\U0001faff"
)
_WORD = re.compile(f"[^{_SIGNS}]+")

_WORDS = """
    ok okay okey okie k kk yes yeah yea yep yup aye no nope nah sure thanks thank thx ty tysm tnx
    cheers cool nice great good fine perfect perfectly excellent awesome amazing brilliant
    wonderful fantastic lovely got go continue proceed next done stop hi hello hey hiya heya howdy
    yo greetings bye goodbye goodnight lol lmao haha hahaha hahahaha hehe hihi xd hm hmm hmmm mhm
    uh um oh ah aha wow yay oops y n please pls plz right correct exactly precisely agreed
    absolutely definitely totally certainly indeed alright understood noted gotcha roger lgtm
    nevermind whatever welcome
    ja jawohl jap jep nein nö nee danke dankeschön bitte gut super weiter genau hallo hallöchen
    servus moin tschüss tschüs klar natürlich gerne gern stimmt passt perfekt prima wunderbar
    verstanden verstehe okee richtig
    oui ouais non merci bien parfait bonjour bonsoir salut coucou génial super compris exactement
    voilà
    sí si no gracias vale bueno perfecto sigue hola adiós adios claro entendido entiendo genial
    estupendo excelente exacto correcto adelante continúa jaja jajaja
    sì grazie bene perfetto ciao avanti certo ottimo esatto capito prego buongiorno buonasera
    sim não nao obrigado obrigada olá oi ótimo perfeito entendi beleza valeu tchau exato
    tak nej tack takk hej hei okej precis perfekt självklart fortsätt
    nee bedankt dank dankjewel goed hoi doei oké klopt begrepen graag alsjeblieft goedemorgen
    goedemiddag goedenavond
    tamam evet hayır teşekkürler merhaba selam sağol lütfen günaydın harika anladım peki olur
    да нет спасибо спс хорошо ок привет пока дальше понятно понял поняла ясно отлично супер конечно
    ладно давай пожалуйста здравствуй здравствуйте ага угу точно продолжай
    так ні дякую добре привіт
    nie dzięki dziękuję dobrze cześć jasne świetnie rozumiem oczywiście proszę dalej dokładnie
    好 好的 好吧 是 是的 不 不是 不用 不用了 谢谢 謝謝 谢谢你 謝謝你 谢谢您 好的谢谢 非常感谢 你好
    您好
    你好吗 早上好 早安 晚上好 晚安 继续 繼續 嗯 对 对的 行 可以 没问题 沒問題 没关系 明白 明白了
    知道了
    收到 当然 太好了 再试一次 不客气 哈哈 哈哈哈
    はい うん ええ いいえ ありがとう ありがとうございます どうもありがとう どうも こんにちは
    こんばんは
    おはよう おはようございます 続けて 続けてください 了解 了解です 了解しました わかりました
    分かりました
    わかった 分かった お願いします はいお願いします 大丈夫 大丈夫です いいですね いいね なるほど
    もう一度
    네 예 응 아니요 아니 고마워 고마워요 감사합니다 안녕 안녕하세요 계속 계속해 계속해줘 좋아
    좋아요 그래
    그래요 알겠어요 알겠습니다 괜찮아요 맞아요 부탁해요 부탁합니다
    ใช่ ไม่ ขอบคุณ ขอบคุณครับ ขอบคุณค่ะ ขอบคุณมาก สวัสดี สวัสดีครับ สวัสดีค่ะ โอเค ตกลง ได้เลย
    نعم لا شكرا شكراً مرحبا أهلا حسنا تمام طيب
    हाँ हां जी नहीं धन्यवाद शुक्रिया नमस्ते अच्छा ठीक
"""

_PHRASES = """
    makes sense; makes total sense; makes perfect sense; that works; it works; never mind;
    try again; try it again;
    try that again; once more; one more time; do it; do that; do this; do so; just do it; go for it;
    go ahead; carry on; keep going; let's go; let's do it; let's do that; i see; i understand;
    i agree; i like it; love it; i love it; of course; no problem; no worries; not bad; not now;
    not yet; not really; you're welcome; my pleasure; me too; that's it; that's all; that's enough;
    all set; well done; very well; good job; great job; nice job; good work; great work; nice work;
    good idea; great idea; fair enough; why not; take care; see you; see ya; so far so good;
    forget it; works for me; looks good to me; for your help; for the help; a lot; a bunch;
    good morning; good afternoon; good evening; good night; good day; have a good day;
    have a nice day; have a great day; how are you; how are you doing; how are you today;
    how's it going; how is it going; how do you do; what's up; whats up; are you there;
    nice to meet you; nice to see you; good to see you;
    danke schön; vielen dank; vielen lieben dank; besten dank; herzlichen dank; mach das;
    mach das mal; mach weiter; mach mal; mach es; klingt gut; klingt super; hört sich gut an;
    kein problem; keine ursache; vergiss es; schon gut; noch einmal; nochmal; versuch es nochmal;
    versuch's nochmal; versuch es noch einmal; auf jeden fall; na klar; macht sinn; ergibt sinn;
    los geht's; guten morgen; guten tag; guten abend; gute nacht; grüß gott; grüß dich;
    wie geht's; wie geht es dir; wie geht es ihnen; wie geht's dir; schönen tag noch; bis bald;
    bis später; bis dann; in ordnung; so ist es; das war's;
    d'accord; ça marche; ça va; c'est bon; c'est parfait; c'est ça; c'est bien; vas-y; allez-y;
    pas de problème; pas de souci; je vois; je comprends; bien sûr; laisse tomber; tant pis;
    encore une fois; s'il te plaît; s'il te plait; s'il vous plaît; s'il vous plait; de rien;
    bonne nuit; bonne journée; bonne soirée; au revoir; à bientôt; à demain; fais ça; fais-le;
    comment ça va; comment vas-tu; comment allez-vous; tu vas bien;
    de acuerdo; está bien; suena bien; tiene sentido; buenos días; buenos dias; buen día;
    buenas tardes; buenas noches; claro que sí; por supuesto; por favor; hazlo; haz eso; muy bien;
    no importa; olvídalo; inténtalo de nuevo; otra vez; una vez más; qué tal; que tal; cómo estás;
    como estas; cómo está; hasta luego; hasta mañana; de nada; sin problema; no hay problema;
    va bene; molto bene; tutto bene; va benissimo; grazie mille; non importa; per favore;
    ho capito; di nuovo; buona notte; buona giornata; buona sera; come stai; come va; a presto;
    nessun problema; ha senso; suona bene;
    está bem; tudo bem; tudo bom; muito bem; bom dia; boa tarde; boa noite; faz sentido;
    faça isso; de novo; tente novamente; sem problema; sem problemas; como vai; não importa;
    pode ser; até logo; isso mesmo; soa bem;
    dank je; dank je wel; dank u; dank u wel; ga door; klinkt goed; geen probleem; hoe gaat het;
    doe dat; doe dat maar; laat maar; goede morgen; tot ziens; heel goed; nog een keer;
    tack så mycket; tusen tack; det låter bra; låter bra; bra tack; gör det; god morgon; god kväll;
    hur mår du; inga problem; mange tak; tusind tak; tak skal du have; lyder godt; det lyder godt;
    gør det; godmorgen; god morgen; hvordan går det; hvordan har du det; tusen takk;
    takk skal du ha; høres bra ut; det høres bra ut; gjør det; god dag; god kveld;
    çok teşekkürler; teşekkür ederim; çok teşekkür ederim; sağ ol; iyi akşamlar; iyi geceler;
    iyi günler; nasılsın; devam et; sorun değil; boş ver; tekrar dene; çok iyi; çok güzel;
    mantıklı;
    большое спасибо; спасибо большое; доброе утро; добрый день; добрый вечер; спокойной ночи;
    не надо; не важно; неважно; попробуй ещё раз; попробуй еще раз; ещё раз; еще раз; как дела;
    сделай это; звучит хорошо; до свидания; без проблем; очень хорошо; доброго ранку; добрий день;
    dzień dobry; dobry wieczór; dobranoc; w porządku; nie ma sprawy; nieważne; spróbuj ponownie;
    jeszcze raz; zrób to; brzmi dobrze; ma sens; jak się masz; co słychać; do widzenia;
    bardzo dziękuję; dziękuję bardzo; bardzo dobrze;
    다시 해줘; 정말 고마워; 정말 감사합니다; 좋은 아침; 문제 없어요;
    صباح الخير; مساء الخير; السلام عليكم; من فضلك; شكرا جزيلا; كيف حالك;
    ठीक है; बहुत धन्यवाद; बहुत अच्छा; शुभ प्रभात; सुप्रभात; कैसे हो; आप कैसे हैं
"""

_FILLER_WORDS = """
    you it that this on ahead so much very really all for me one too then now just do i m s we re
    there again and everyone dude guys works sounds looks not with
    alles das es dir euch ihnen sehr dann mir doch so mal noch mach und zusammen toll
    beaucoup très toi vous alors ça c est et mille
    muy mucho mucha muchas muchísimas todo eso ti y
    molto mille a te e tutto così
    muito muita isso você
    je wel zeer hoor maar
    så mycket meget mye det
    çok bu
    очень это тебе вам и
    bardzo to ci
    ครับ ค่ะ है
"""


def _read(entries: Iterable[str]) -> frozenset[str]:
    return frozenset(" ".join(_WORD.findall(entry.casefold())) for entry in entries)


_TRIVIAL: Final = _read(_WORDS.split()) | _read(_PHRASES.split(";"))
"""Words and phrases that ask nothing, alone or together."""

_FILLERS: Final = _read(_FILLER_WORDS.split())
"""Words that add nothing to trivial ones. Without these they may ask something: "and you?"."""

_KNOWN: Final = frozenset(" ".join(_TRIVIAL | _FILLERS).split())
_MOST_WORDS: Final = max(phrase.count(" ") for phrase in _TRIVIAL) + 1

_MAX_CHARS = 50
"""The most characters of a prompt that asks nothing."""


def is_trivial(query: str) -> bool:
    """Say whether a prompt asks nothing of memory: "ok", "/help", blanks, "👍".

    >>> is_trivial("Yes, please do that!"), is_trivial("yes, book the hotel")
    (True, False)
    """
    text = query.strip()
    if text.startswith("/"):
        return True
    if len(text) > _MAX_CHARS:
        return False
    folded = text.casefold()
    for word in folded.split():
        if word not in _KNOWN and word.isalpha():  # nearly every prompt ends here
            return False
    words = _WORD.findall(folded)
    if any(word not in _KNOWN and any(map(str.isalnum, word)) for word in words):
        return False
    return _ask_nothing([word for word in words if word in _KNOWN])


def _ask_nothing(words: Sequence[str]) -> bool:
    """Say whether words consist only of trivial phrases, at least one, and fillers, or are none."""
    found, at = not words, 0
    while at < len(words):
        size = _phrase_at(words, at)
        if not size and words[at] not in _FILLERS:
            return False
        found = found or size > 0
        at += size or 1
    return found


def _phrase_at(words: Sequence[str], at: int) -> int:
    """Return how many words the longest trivial phrase that begins at `at` has; 0 if none does."""
    most = min(_MOST_WORDS, len(words) - at)
    return next((n for n in range(most, 0, -1) if " ".join(words[at : at + n]) in _TRIVIAL), 0)
