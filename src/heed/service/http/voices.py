"""Served voices."""

from typing import Any

from heed.audio.files import Sound
from heed.products.product import as_texts
from heed.service.http.asked_model import AskedModel
from heed.service.http.queue import Ticket

SLICE_TOKENS = 64  # of plain work that a slice counts as


class ServedVoice(AskedModel):
    """One voice, or several speakers; texts take turns in short slices of time."""

    attends = False

    def warm_up(self) -> None:
        """Build now what the first call would build."""

    def speak(self, ticket: Ticket, text: str, speaker: str | None) -> Sound:
        """A text, frame by frame; between slices of time other requests run. The sound is made of the frames in the
        thread of the request.
        """
        product = self.product
        ids, number = product.encode(as_texts([text])), product.speaker_number(speaker)
        [frames], _ = self.ask_in_slices(ticket, "speak", product.writing(ids, [number]), SLICE_TOKENS)
        return product.sound_of(frames)

    def facts(self) -> dict[str, Any]:
        """Its entry in /v1/models."""
        product = self.product
        known = {"language": product.facts.get("language"), "speakers": product.speakers.names}
        return {**super().facts(), "verb": "speak", **known, "rate": product.sound.settings.rate}
