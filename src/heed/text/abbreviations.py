"""Words that end in a full stop without ending a sentence, by language; in small letters, without their last stop."""

# Before a name or the thing itself: what follows goes with them, capital or not.
BEFORE = {
    "en": """mr mrs ms mx dr prof rev fr hon st ste gen col maj capt cmdr lt sgt cpl pvt adm gov pres sen rep amb supt
        messrs mmes mt ft e.g i.e viz cf vs v al dept univ assn bros ave blvd rd hwy a.k.a approx""",
    "de": """hr fr frl dr prof dipl ing med phil jur mag st hl sr jr z.b d.h u.a v.a i.d.r o.ä u.ä bzw ca vgl evtl ggf inkl
        exkl max min mind sog geb gest verh bes insb str tel z.t z.zt u.u o.g s.o s.u i.a m.e m.w a.d v.chr n.chr""",
    "fr": """m mm mme mmes mlle mlles dr pr me mgr st ste av bd boul env p.ex cf c.-à-d art chap éd env tél apr av.j.-c
        réf vol coll hab min max ca""",
    "any": "dr prof mr mrs ms st vs cf e.g i.e ca z.b d.h",
}
# Before a number.
_NUMBERED = (
    "no nos nr nrn nº n° p pp s ss vol vols fig figs abb tab ch chap kap sec § art bd ver v op ed eq gl z az approx ca"
)
# At the end of a list or of a name: a sentence may end there, if the next one clearly begins.
_AFTER = """etc usw usf u.s.w inc ltd co corp llc plc jr sr bros gmbh a.m p.m a.d b.c b.c.e c.e ph.d m.d b.a m.a d.c u.s u.k u.n
    u.s.a e.u jan feb mar apr jun jul aug sep sept oct nov dec okt dez janv févr juil déc mon tue wed thu fri sat sun"""
# What a sentence begins with and a name does not.
_BEGINS = """the a an this that these those he she it they we you i in on at by for from with after before when while if as but
    and or so then there however his her its their our my what who where why how yet not no
    der die das den dem ein eine einen einem er sie es wir ihr ich in im am auf mit nach bei aus und aber oder wenn als da dann doch so
    le la les un une des ce cette ces il elle ils elles nous vous je on en dans sur pour par avec mais et ou si quand alors"""


NUMBERED, AFTER, BEGINS = (frozenset(words.split()) for words in (_NUMBERED, _AFTER, _BEGINS))


def before(language: str | None) -> frozenset[str]:
    """What stands before the rest of its sentence; of all languages together where none is named."""
    if language in BEFORE:
        return frozenset(BEFORE[language].split()) | frozenset(BEFORE["any"].split())
    return frozenset(word for words in BEFORE.values() for word in words.split())
