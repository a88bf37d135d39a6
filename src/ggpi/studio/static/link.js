// The WebSocket to the server: messages out, frames in, and a new connection when the old one is lost.
const decoder = new TextDecoder();

// Of the protocol that this page speaks: `ggpi.studio.protocol.VERSION`.
export const VERSION = 1;
export const REJECTED = "rejected";

export function decode(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(decoder.decode(new Uint8Array(buffer, 4, size)));
  let at = 4 + size;
  for (const { name, shape } of header.arrays) {
    const count = shape.reduce((a, b) => a * b, 1);
    header[name === "values" ? "numbers" : name] = new Float32Array(buffer, at, count);
    header[`${name}Shape`] = shape;
    at += 4 * count;
  }
  return header;
}

// A WebSocket does not say why it was not opened: the page itself does.
async function isRejected() {
  try {
    return (await fetch(`${location.pathname}${location.search}`, { cache: "no-store" })).status === 403;
  } catch {
    return false;
  }
}

export class Link {
  constructor(onFrame, onState) {
    this.onFrame = onFrame;
    this.onState = onState;
    this.wait = 300;
    // A browser may keep a page that was left, ready for the back button: it must not keep a planner as well.
    addEventListener("pagehide", () => this.socket.close());
    this.connect();
  }

  connect() {
    const token = new URLSearchParams(location.search).get("token") ?? "";
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}/ws?token=${encodeURIComponent(token)}`);
    this.socket.binaryType = "arraybuffer";
    let isOpen = false;
    this.socket.onopen = () => { isOpen = true; this.wait = 300; this.onState("open"); };
    this.socket.onmessage = ({ data }) => this.onFrame(typeof data === "string" ? JSON.parse(data) : decode(data));
    this.socket.onclose = async ({ reason }) => {
      this.onState("lost", reason || (!isOpen && await isRejected() ? REJECTED : ""));
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(2 * this.wait, 5000);
    };
  }

  send(type, fields = {}) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type, ...fields }));
  }
}
