// Sounds in the browser: any recording that it can play as samples of one channel, and samples as a WAV file.
export async function decoded(blob, rate) {
  const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await blob.arrayBuffer());
  const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
  return channels.length === 1 ? channels[0] : channels[0].map((_, i) => channels.reduce((sum, own) => sum + own[i], 0) / channels.length);
}

export function wav(samples, rate) {
  const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
  const word = (at, text) => [...text].forEach((char, i) => view.setUint8(at + i, char.charCodeAt(0)));
  word(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples.length, true);
  word(8, "WAVEfmt ");
  for (const [at, value] of [[16, 16], [24, rate], [28, 2 * rate], [40, 2 * samples.length]]) view.setUint32(at, value, true);
  for (const [at, value] of [[20, 1], [22, 1], [32, 2], [34, 16]]) view.setUint16(at, value, true);
  word(36, "data");
  samples.forEach((value, i) => view.setInt16(44 + 2 * i, Math.max(-32768, Math.min(32767, Math.round(value * 32768))), true));
  return new Blob([view], { type: "audio/wav" });
}

export async function recorder() {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const parts = [], machine = new MediaRecorder(stream);
  machine.addEventListener("dataavailable", (event) => parts.push(event.data));
  machine.start();
  return {
    stop: () => new Promise((done) => {
      machine.addEventListener("stop", () => {
        stream.getTracks().forEach((track) => track.stop());
        done(new Blob(parts, { type: machine.mimeType }));
      });
      machine.stop();
    }),
  };
}
