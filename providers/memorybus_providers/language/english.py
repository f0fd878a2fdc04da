"""The English words that search knows: stop words, irregular forms, short names and months.

No list here is taken from a data set or tuned to one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_HELD_BACK = """
    a about after again all also am an and any are as at be been before being between both but by
    can could did do does doing don down during each else ever few for from further get gets
    getting got had has have having he her here hers herself him himself his how i if in into is
    it its itself just kind let like likely ll many may me might more most much must my myself no
    nor not now of off on once one only or other our ours ourselves out over own re s same shall
    she should so some such t than that the their theirs them themselves then there these they
    this those through to too type under until up us ve very was we were what when where which
    while who whom whose why will with would you your yours yourself yourselves
"""
_CONTRACTED = """
    ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't how's isn't I've
    shouldn't that's they're wasn't weren't what's when's where's who's won't wouldn't you're
"""
_UNSIGNED = _CONTRACTED.replace("'", "").lower()
_CUT_OFF = "aren couldn didn doesn hadn hasn isn shouldn wasn weren wouldn"
STOP_WORDS = frozenset(f"{_HELD_BACK} {_UNSIGNED} {_CUT_OFF}".split())
"""Words that say nothing about what is asked for.

They include contractions without their apostrophe. "won", "haven" and "d" are missing because they
have other meanings, and "im" is German.
"""

SILENT = frozenset(_HELD_BACK.split()) - {"don", "may", "will"}
"""The stop words that are not names: no English text is found by one of them.

An index is written without them, and postings are removed by the same rule. So a change of this set
needs a new schema version in every store.
"""

NAMES_IN_CAPITALS: Final = frozenset({"it", "us", "who"})
"""Those of these words that are names if they are written in capitals; then they are indexed."""

_IRREGULAR = """
    arise arose arisen; awake awoke awoken; bear bore borne; beat beaten; become became;
    begin began begun; bend bent; bind bound; bite bit bitten; bleed bled; blow blew blown;
    break broke broken; bring brought; build built; burn burnt; buy bought; catch caught;
    choose chose chosen; come came; creep crept; deal dealt; dig dug; draw drew drawn;
    dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen;
    feed fed; feel felt; fight fought; find found; flee fled; fly flew flown; forbid forbade;
    forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; give gave given;
    go goes went gone; grow grew grown; hang hung; hear heard; hide hid hidden; hold held;
    keep kept; kneel knelt; know knew known; lay laid; lead led; learn learnt; leave left;
    lend lent; light lit; lose lost; make made; mean meant; meet met; pay paid; ride rode ridden;
    ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell sold;
    send sent; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk;
    sing sang sung; sink sank sunk; sit sat; sleep slept; slide slid; speak spoke spoken;
    spend spent; spin spun; stand stood; steal stole stolen; stick stuck; sting stung;
    strike struck; swear swore sworn; sweep swept; swim swam swum; swing swung; take took taken;
    teach taught; tear tore torn; tell told; think thought; throw threw thrown;
    understand understood; wake woke woken; wear wore worn; weep wept; win won; write wrote
    written; foot feet; goose geese; knife knives; leaf leaves;
    man men; mouse mice; person people; shelf shelves; tooth teeth; wolf wolves;
    woman women; good better best; bad worse worst
"""

_ALIKE = """
    mother mum mums mom moms mommy mummy mama mutter madre mae moeder;
    father dad dads daddy papa vater padre pere pai;
    grandmother grandma grandmas granny nana oma abuela nonna;
    grandfather grandpa grandpas granddad grandad opa abuelo nonno;
    child children kid kids; sister sis schwester hermana soeur sorella zus;
    brother bro bruder hermano frere fratello irmao broer; husband hubby ehemann marido marito;
    wife wives ehefrau esposa moglie; daughter tochter hija fille figlia filha dochter;
    son sohn hijo fils figlio filho zoon; aunt tante tia zia; uncle onkel tio oncle zio oom;
    cousin cousine prima primo cugina cugino; boss jefe jefa;
    landlord vermieter vermieterin casero casera proprietaire; doctor dr gp;
    veterinarian vet vets; medicine medication medications meds; influenza flu;
    bicycle bike bikes; car cars automobile auto; airplane aeroplane plane planes;
    television tv telly; telephone phone phones; photograph photo photos; picture pic pics;
    movie movies film films; refrigerator fridge; laboratory lab labs; gymnasium gym;
    advertisement ad ads advert; application app apps; examination exam exams;
    mathematics math maths; information info; colour color colours colors; favourite favorite;
    neighbour neighbor neighbours neighbors; centre center; theatre theater; grey gray;
    programme program; jewellery jewelry; cosy cozy; pyjamas pajamas; tyre tire tyres tires
"""
"""Words with their short, familiar or differently spelled forms, folded; and family relations and
other roles, which bilingual people name in either language. Words are left out that mean something
else in English (chef, mere) or are names there (Irma)."""

FORMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        group.split()[0]: tuple(group.split())
        for group in (*_IRREGULAR.split(";"), *_ALIKE.split(";"))
    }
)
"""Each base form with all of its forms: first itself, then irregular forms and other names."""

BASE_FORM: Final[Mapping[str, str]] = MappingProxyType(
    {form: base for base, forms in FORMS.items() for form in forms}
)
"""The base form of each form."""

_MONTHS = "january february march april may june july august september october november december"
MONTHS: Final[Mapping[str, int]] = MappingProxyType(
    {name: number for number, name in enumerate(_MONTHS.split(), start=1)}
)
"""The months' numbers, from 1."""
