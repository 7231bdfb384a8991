/** Sound: a small organ made of sine waves, the same for the loudspeaker and for a file. */

const PARTIALS = [[1, 0.62], [2, 0.2], [3, 0.1], [4, 0.05]];
const RELEASE = 0.09;
const PAN = [-0.35, -0.12, 0.12, 0.35];

export const hertz = (pitch) => 440 * 2 ** ((pitch - 69) / 12);
export const secondsOf = (piece, steps) => (steps * 15) / piece.tempo;

/** Put the notes of a piece into a context, from a step on; returns when it ends, in seconds of the context. */
export function schedule(context, piece, { at = 0, from = 0, output = context.destination } = {}) {
  const mixed = new GainNode(context, { gain: 0.22 });
  mixed.connect(output);
  let end = at;
  piece.voices.forEach((line, voice) => {
    const side = new StereoPannerNode(context, { pan: PAN[voice] });
    side.connect(mixed);
    for (const note of line) {
      if (note.start + note.length <= from) continue;
      const start = at + secondsOf(piece, Math.max(0, note.start - from));
      const stop = at + secondsOf(piece, note.start + note.length - from);
      tone(context, side, hertz(note.pitch), start, stop);
      end = Math.max(end, stop + RELEASE);
    }
  });
  return { end, stop: () => mixed.disconnect() };
}

function tone(context, output, frequency, start, stop) {
  const level = new GainNode(context, { gain: 0 });
  level.gain.setValueAtTime(0, start);
  level.gain.linearRampToValueAtTime(1, start + 0.015);
  level.gain.setTargetAtTime(0.72, start + 0.02, 0.25);
  level.gain.setTargetAtTime(0, Math.max(start + 0.03, stop - 0.03), RELEASE / 3);
  level.connect(output);
  for (const [multiple, share] of PARTIALS) {
    const wave = new OscillatorNode(context, { frequency: frequency * multiple });
    const gain = new GainNode(context, { gain: share });
    wave.connect(gain).connect(level);
    wave.start(start);
    wave.stop(stop + RELEASE);
  }
}

/** The samples of a piece, rendered without a loudspeaker. */
export async function rendered(piece, rate = 22050) {
  const seconds = secondsOf(piece, piece.steps) + RELEASE + 0.1;
  const context = new OfflineAudioContext(2, Math.ceil(seconds * rate), rate);
  schedule(context, piece);
  return context.startRendering();
}

/** Plays a piece; tells which step sounds, and when it is over. */
export function makePlayer(tell) {
  let context = null;
  let playing = null;

  function frame() {
    if (!playing) return;
    const step = playing.from + ((context.currentTime - playing.at) * playing.piece.tempo) / 15;
    if (context.currentTime >= playing.end) return halt();
    tell(Math.max(playing.from, step));
    requestAnimationFrame(frame);
  }

  function halt() {
    playing?.stop();
    playing = null;
    tell(null);
  }

  return {
    get isPlaying() {
      return playing !== null;
    },
    halt,
    async play(piece, from = 0) {
      halt();
      context ??= new AudioContext();
      await context.resume();
      const at = context.currentTime + 0.06;
      playing = { piece, from, at, ...schedule(context, piece, { at, from }) };
      frame();
    },
  };
}
