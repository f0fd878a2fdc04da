"""Questions in ten languages, each asked of a person's few memories in that language."""

import pytest
from unit.holographic.holographic_feeding import feed, opened, texts, turn

MEMORIES: dict[str, tuple[str, ...]] = {
    "German": (
        "Meine Schwester wohnt seit März in Leipzig", "Ich bin gegen Penizillin allergisch",
        "Der Hund heißt Bruno und ist drei Jahre alt", "Donnerstags gehe ich zum Klavierunterricht",
        "Mein Auto steht in der Werkstatt",
    ),
    "Spanish": (
        "Mi hermana vive en Sevilla desde marzo", "Soy alérgico a la penicilina",
        "El perro se llama Bruno y tiene tres años", "Los jueves voy a clase de piano",
        "Mi coche está en el taller",
    ),
    "French": (
        "Ma sœur habite à Lyon depuis mars", "Je suis allergique à la pénicilline",
        "Le chien s'appelle Bruno et il a trois ans", "Le jeudi je vais au cours de piano",
        "Ma voiture est au garage",
    ),
    "Chinese": (
        "我妹妹三月搬到了成都", "我对青霉素过敏", "我的狗叫布鲁诺,三岁了", "我每周四上钢琴课",
        "我的车在修理厂",
    ),
    "Japanese": (
        "妹は三月から札幌に住んでいます", "私はペニシリンにアレルギーがあります",
        "犬の名前はブルーノで三歳です", "木曜日にピアノのレッスンに行きます",
        "車は修理工場にあります",
    ),
    "Korean": (
        "여동생은 3월부터 부산에 살아요", "저는 페니실린 알레르기가 있어요",
        "강아지 이름은 브루노이고 세 살이에요", "목요일마다 피아노 수업에 가요",
        "제 자동차는 정비소에 있어요",
    ),
    "Russian": (
        "Моя сестра с марта живёт в Казани", "У меня аллергия на пенициллин",
        "Собаку зовут Бруно, ей три года", "По четвергам я хожу на уроки фортепиано",
        "Моя машина в ремонте",
    ),
    "Thai": (
        "น้องสาวย้ายไปอยู่เชียงใหม่เมื่อเดือนมีนาคม", "ฉันแพ้ยาเพนิซิลลิน", "สุนัขชื่อบรูโน่อายุสามปี",
        "ทุกวันพฤหัสฉันเรียนเปียโน", "รถของฉันอยู่ที่อู่ซ่อม",
    ),
    "Arabic": (
        "تعيش أختي في طنجة منذ مارس", "عندي حساسية من البنسلين", "اسم الكلب برونو وعمره ثلاث سنوات",
        "أذهب إلى درس البيانو كل خميس", "سيارتي في ورشة الإصلاح",
    ),
    "Turkish": (
        "Kız kardeşim marttan beri İzmir'de yaşıyor", "Penisiline alerjim var",
        "Köpeğin adı Bruno ve üç yaşında", "Perşembe günleri piyano dersine gidiyorum",
        "Arabam tamirhanede",
    ),
}  # fmt: skip
"""Of each person: a sister, an allergy, a dog, lessons, and a car."""

QUESTIONS: dict[str, tuple[str, ...]] = {
    "German": (
        "Wo wohnt meine Schwester?", "Wogegen bin ich allergisch?", "Wie heißt mein Hund?",
        "Wann ist der Klavierunterricht?", "Wo steht mein Auto?",
    ),
    "Spanish": (
        "¿Dónde vive mi hermana?", "¿A qué soy alérgico?", "¿Cómo se llama mi perro?",
        "¿Cuándo tengo clase de piano?", "¿Dónde está mi coche?",
    ),
    "French": (
        "Où habite ma sœur ?", "À quoi suis-je allergique ?", "Comment s'appelle mon chien ?",
        "Quand est mon cours de piano ?", "Où est ma voiture ?",
    ),
    "Chinese": (
        "我妹妹住在哪里?", "我对什么过敏?", "我的狗叫什么名字?", "我什么时候上钢琴课?",
        "我的车在哪里?",
    ),
    "Japanese": (
        "妹はどこに住んでいますか?", "私は何にアレルギーがありますか?", "犬の名前は何ですか?",
        "ピアノのレッスンはいつですか?", "車はどこにありますか?",
    ),
    "Korean": (
        "여동생은 어디에 살아요?", "저는 무슨 알레르기가 있어요?", "강아지 이름이 뭐예요?",
        "피아노 수업은 언제예요?", "자동차는 어디에 있어요?",
    ),
    "Russian": (
        "Где живёт моя сестра?", "На что у меня аллергия?", "Как зовут мою собаку?",
        "Когда у меня урок фортепиано?", "Где моя машина?",
    ),
    "Thai": ("น้องสาวอยู่ที่ไหน", "ฉันแพ้ยาอะไร", "สุนัขชื่ออะไร", "ฉันเรียนเปียโนวันไหน", "รถอยู่ที่ไหน"),
    "Arabic": (
        "أين تعيش أختي؟", "من ماذا عندي حساسية؟", "ما اسم الكلب؟", "متى درس البيانو؟",
        "أين سيارتي؟",
    ),
    "Turkish": (
        "Kız kardeşim nerede yaşıyor?", "Neye alerjim var?", "Köpeğimin adı ne?",
        "Piyano dersim ne zaman?", "Arabam nerede?",
    ),
}  # fmt: skip


@pytest.mark.parametrize("language", MEMORIES)
def test_the_right_memory_comes_first_in_its_language(language, tmp_path):
    """Each question finds its memory first, among all of the person's."""
    with opened(tmp_path) as provider:
        for n, text in enumerate(MEMORIES[language], start=1):
            feed(provider, [turn(text)], first=n, session=f"s{n}", root=f"s{n}")

        first = [texts(provider, question)[:1] for question in QUESTIONS[language]]

    assert first == [[text] for text in MEMORIES[language]]
