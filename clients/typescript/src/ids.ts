/** Ids of events: UUIDs of version 7, which sort by time. */

/** Return 32 hex digits. A request that is sent again has the same ids, and adds nothing (G2). */
export function newId(now: number = Date.now()): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  new DataView(bytes.buffer).setUint32(0, Math.floor(now / 0x10000));
  bytes[4] = (now >> 8) & 0xff;
  bytes[5] = now & 0xff;
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
