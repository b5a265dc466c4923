"""Served voices."""

from typing import Any

from heed.audio.files import Sound
from heed.service.http.asked_model import AskedModel
from heed.service.http.queue import Ticket

PER_TOKEN = 4  # tokens of plain work that a letter costs: it has several frames


class ServedVoice(AskedModel):
    """One voice, or several speakers; texts are synthesized one after another."""

    attends = False

    def warm_up(self) -> None:
        """Build now what the first call would build."""

    def speak(self, ticket: Ticket, text: str, speaker: str | None) -> Sound:
        size = PER_TOKEN * max(1, len(self.product.encode([text])[0]))
        [found] = self.ask(ticket, "speak", lambda: self.product.speak([text], speaker), size)
        return found.sound

    def facts(self) -> dict[str, Any]:
        """Its entry in /v1/models."""
        product = self.product
        known = {"language": product.facts.get("language"), "speakers": product.speakers.names}
        return {**super().facts(), "verb": "speak", **known, "rate": product.sound.settings.rate}
