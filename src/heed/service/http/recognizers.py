"""Served speech recognizers."""

import io
from typing import Any

from heed.audio import files
from heed.products.recognizer import Transcription
from heed.service.http.asked_model import AskedModel
from heed.service.http.queue import Ticket

PER_SECOND = 25  # states, the tokens of plain work, of a second of sound
SLICE = {"cpu": 10.0, "cuda": 100.0}  # seconds of sound that are read between two requests, unless a window is longer
BOUNDS = files.Bounds(
    seconds=1800.0, samples=2 * 1800 * 48_000, rate=192_000
)  # of one recording: half an hour of stereo


class ServedRecognizer(AskedModel):
    """One recognizer; long recordings are read in windows, between which others are read."""

    attends = False

    def warm_up(self) -> None:
        """Build now what the first call would build."""

    def transcribe(self, ticket: Ticket, name: str, data: bytes, **changes: Any) -> Transcription:
        """Transcribe an uploaded file, window by window; its features are computed in the thread of the request."""
        sound = files.decode(io.BytesIO(data), name or "the file", BOUNDS)
        part = SLICE.get(self.product.device.type, SLICE["cpu"])
        frames = round(part / self.product.sound.seconds)
        work = self.product.transcribing([sound], batch_frames=frames, **changes)
        next(work)
        [found] = self.ask_in_slices(ticket, "transcribe", work, round(PER_SECOND * min(part, sound.seconds)) or 1)
        return found

    def facts(self) -> dict[str, Any]:
        """Its entry in /v1/models."""
        known = {name: self.product.facts.get(name) for name in ("language", "target_language", "longest_seconds")}
        return {**super().facts(), "verb": "transcribe", **known, "rate": self.product.sound.settings.rate}
