"""Words of running text that stand around a diagnosis and say nothing that a code would hold.

Holds: lead-ins ("infolge einer", "im Rahmen eines") and fillers ("ausgeprägte", "bioptisch gesicherte",
"klinisch stabil"). Refuses: degrees, certainty, causes, and whatever the classification distinguishes by.
"""

from __future__ import annotations

from alpha_id_runtime.understanding.cues import cut
from alpha_id_runtime.understanding.tables import LazyPattern, folded

_ARTICLE = r"(?:(?:ein|d)(?:e[rsnm]?|as)?\s+|seine[rsnm]?\s+|ihre[rsnm]?\s+)?"
_PATIENT = (
    r"^\s*(?:o\.\s?g\.\s+)?(?:\d{1,3}[\s-]*j(?:aehr|\.)\w*\.?\s+)?(?:pat(?:\.|ient(?:in|en)?)?)\s+"
    r"(?:m\.|mit|hat|zeigt|leidet an)\s+"
)
_LEAD_IN = LazyPattern(
    _PATIENT + r"(?:bek\.\s+)?|"
    r"^\s*(?:(?:und|sowie|auch|weiterhin|zudem|ausserdem|ferner|aber|jedoch|sondern)\s+)?"
    r"(?:(?:mit|bei|unter)\s+(?:den\s+|dem\s+)?(?:klinischen?\s+)?(?:zeichen|bild|nachweis|symptomatik)\s+"
    r"|auf dem boden\s+|im rahmen\s+|im sinne\s+|infolge\s+|aufgrund\s+|wegen\s+"
    r"|(?:bei|mit)\s+(?=\w+e[rmns]\s+\w))" + _ARTICLE + r"|^\s*(?:eine[rsnm]|eines)\s+"
)
_ENDING = r"(?:e[rsnm]?)?\b"
_FILLER = LazyPattern(
    r"\bbek\.\s+|\b(?:(?:bioptisch|histologisch|sonographisch|radiologisch|angiographisch|endoskopisch|klinisch|serologisch"
    r"|ct-morphologisch|mr-tomographisch|anamnestisch|seit langem|seit jahren|lange?|seit (?:der )?kindheit"
    r"|neu|gut|medikamentoes|erstmals|frisch)\s+(?:gesichert|nachgewiesen|bekannt|bestehend|diagnostiziert|festgestellt"
    r"|aufgetreten|eingestellt)"
    r"|ausgepraegt|deutlich|bekannt|vorbekannt|langjaehrig|vorbestehend|ausgedehnt|massiv|quaelend|erstmalig"
    r"|inoperabel|inoperabl|(?:katecholamin|substitutions|interventions|behandlungs|antibiotika|therapie)pflichtig"
    r"|(?:haemodynamisch\s+)?(?:nicht\s+)?relevant|voellig|dauernd|stundenlang)" + _ENDING + r"\s*"
)
_TAIL = LazyPattern(
    r"\s*[,;(]\s*(?:(?:derzeit|aktuell|z\.\s?zt\.|zur zeit|klinisch|weiterhin|bislang|bisher|seither)\s+)*"
    r"(?:stabil|kompensiert|zufallsbefund|beschwerdefrei|(?:gut|medikamentoes) eingestellt|erstvorstellung"
    r"|verlaufskontrolle|unveraendert|konstant|rezidivfrei)\s*\)?\s*$"
)
_LETTERS = LazyPattern(r"[^\W\d_]{4,}")


def take_fillers(text: str) -> tuple[str, list[str]]:
    """Return ``text`` without lead-in and fillers, and what was taken off; as it is if no word is left."""
    whole = folded(text)
    spans = [match.span() for match in _FILLER().finditer(whole.low)]
    for pattern in (_LEAD_IN(), _TAIL()):
        match = pattern.search(whole.low)
        if match:
            spans.append(match.span())
    if not spans:
        return text, []
    spans.sort()
    places = []
    last = 0
    for start, end in spans:
        if end > last:
            places.append(whole.span(max(start, last), end))
            last = end
    rest = cut(text, places)
    if not _LETTERS().search(rest):
        return text, []
    return rest, [f"filler: {text[start:end].strip(' ,;(')}" for start, end in places]
