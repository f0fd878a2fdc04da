"""Which prompts ask nothing of memory."""

from memorybus.small_talk import UNASKED, kind_of

TRIVIAL = """
    ok | Ok, thanks! | /help | 👍 | go on… | Danke! | merci bien | はい | 好的。 | спасибо | 네
    teşekkürler | ... | yes yes yes | yes please do that | thank you so much!! | sounds good
    makes sense | That makes sense. | haha nice one | alles klar, danke dir | ja, mach das
    sounds great, thanks | got it | never mind | try again | ok go on | perfect, that works
    thanks😊 | that's great | That’s all, thanks a lot | let's do it | go ahead please
    thank you for your help! | no thanks, not now | no, not that one | looks good to me | great job!
    vielen Dank! | klingt gut, danke | passt so | na klar | noch einmal bitte
    ça marche, merci beaucoup | d'accord | vas-y | oui, s'il te plaît | très bien
    ¡muchas gracias! | claro que sí | sí, por favor | está bien, gracias
    grazie mille | sì, va bene | tudo bem, obrigada | muito obrigado | dank je wel
    tack så mycket | mange tak | çok teşekkür ederim | большое спасибо | да, пожалуйста
    dziękuję bardzo | 没问题，谢谢 | はい、お願いします | 네, 알겠습니다 | شكرا جزيلا | ठीक है।
"""
GREETINGS = """
    hi there | good morning | Good morning! | hey, how are you? | guten Morgen | Hallo zusammen
    hello again | Hi, how's it going? | wie geht es dir? | bonjour, comment ça va ? | buenos días
    ¿Qué tal? | bom dia | buongiorno | goedemorgen | god morgon | günaydın | доброе утро | おはよう
    早上好 | 안녕하세요 | dzień dobry | صباح الخير | สวัสดีครับ | नमस्ते
"""
ASKING = """
    42 | Okapi? | who | no news of Ana? | what is next | 继续画船 | ja, und Oskar? | how much
    yes book the hotel | yes please do that for Ana | do you | and you | good restaurants
    how are you and Ana | good morning Lisbon | mach das Boot klar | sounds | the good one
    thanks, now the invoice | try again with Kiel | never | sense | merci pour le bateau
    gracias por el barco | so much | it | where are you | did it work | what works | nice hotel
"""


def prompts(lines: str) -> list[str]:
    """Return the prompts of a table."""
    return [prompt.strip() for line in lines.strip().splitlines() for prompt in line.split("|")]


def test_a_trivial_prompt_asks_nothing():
    """Assent, thanks and greetings, in any of several languages, ask nothing of memory."""
    trivial = ["", " \n", *prompts(TRIVIAL), *prompts(GREETINGS)]
    assert [prompt for prompt in trivial if kind_of(prompt) not in UNASKED] == []


def test_a_prompt_with_a_word_of_its_own_asks():
    """One word that is not in the tables makes a prompt worth asking, and so do fillers alone."""
    assert [prompt for prompt in [*prompts(ASKING), "ok " * 20] if kind_of(prompt) in UNASKED] == []
