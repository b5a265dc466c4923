"""Served speech recognizers."""

import io
from typing import Any

from heed.audio import files
from heed.products.recognizer import Transcription
from heed.service.http.asked_model import AskedModel
from heed.service.http.queue import Ticket

PER_SECOND = 25  # states, the tokens of plain work, of a second of sound
BOUNDS = files.Bounds(
    seconds=1800.0, samples=2 * 1800 * 48_000, rate=192_000
)  # of one recording: half an hour of stereo


class ServedRecognizer(AskedModel):
    """One recognizer; recordings are read one after another, long ones in windows."""

    attends = False

    def warm_up(self) -> None:
        """Build now what the first call would build."""

    def transcribe(self, ticket: Ticket, name: str, data: bytes, **changes: Any) -> Transcription:
        """Transcribe an uploaded file."""
        sound = files.decode(io.BytesIO(data), name or "the file", BOUNDS)
        size = max(1, round(PER_SECOND * sound.seconds))
        [found] = self.ask(ticket, "transcribe", lambda: self.product.transcribe([sound], **changes), size)
        return found

    def facts(self) -> dict[str, Any]:
        """Its entry in /v1/models."""
        known = {name: self.product.facts.get(name) for name in ("language", "target_language", "longest_seconds")}
        return {**super().facts(), "verb": "transcribe", **known, "rate": self.product.sound.settings.rate}
