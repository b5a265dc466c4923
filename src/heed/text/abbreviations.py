"""Abbreviations whose full stop need not end a sentence, by language; lowercase, without the last full stop."""

from functools import cache

# What follows belongs to the abbreviation, capitalized or not. Moses calls these non-breaking prefixes.
NONBREAKING = {
    "en": """mr mrs ms mx dr prof rev fr hon st ste gen col maj capt cmdr lt sgt cpl pvt adm gov pres sen rep amb supt
        messrs mmes mt ft e.g i.e viz cf vs v al dept univ assn bros ave blvd rd hwy a.k.a approx""",
    "de": """hr fr frl dr prof dipl ing med phil jur mag st hl sr jr z.b d.h u.a v.a i.d.r o.ä u.ä bzw ca vgl evtl ggf inkl
        exkl max min mind sog geb gest verh bes insb str tel z.t z.zt u.u o.g s.o s.u i.a m.e m.w a.d v.chr n.chr""",
    "fr": """m mm mme mmes mlle mlles dr pr me mgr st ste av bd boul env p.ex cf c.-à-d art chap éd env tél apr av.j.-c
        réf vol coll hab min max ca""",
    "any": "dr prof mr mrs ms st vs cf e.g i.e ca z.b d.h",
}
# Non-breaking before a number only.
_NUMERIC_ONLY = (
    "no nos nr nrn nº n° p pp s ss vol vols fig figs abb tab ch chap kap sec § art bd ver v op ed eq gl z az approx ca"
)
# They close a list or a name, so a sentence may end with them, if the next word clearly starts a new one.
_MAY_END = """etc usw usf u.s.w inc ltd co corp llc plc jr sr bros gmbh a.m p.m a.d b.c b.c.e c.e ph.d m.d b.a m.a d.c u.s u.k u.n
    u.s.a e.u jan feb mar apr jun jul aug sep sept oct nov dec okt dez janv févr juil déc mon tue wed thu fri sat sun"""
# Words that start sentences but not names.
_STARTERS = """the a an this that these those he she it they we you i in on at by for from with after before when while if as but
    and or so then there however his her its their our my what who where why how yet not no
    der die das den dem ein eine einen einem er sie es wir ihr ich in im am auf mit nach bei aus und aber oder wenn als da dann doch so
    le la les un une des ce cette ces il elle ils elles nous vous je on en dans sur pour par avec mais et ou si quand alors"""


NUMERIC_ONLY, MAY_END, STARTERS = (frozenset(words.split()) for words in (_NUMERIC_ONLY, _MAY_END, _STARTERS))


@cache
def nonbreaking(language: str | None) -> frozenset[str]:
    """Abbreviations that never end a sentence; those of all languages if the language is unknown."""
    if language in NONBREAKING:
        return frozenset(NONBREAKING[language].split()) | frozenset(NONBREAKING["any"].split())
    return frozenset(word for words in NONBREAKING.values() for word in words.split())
