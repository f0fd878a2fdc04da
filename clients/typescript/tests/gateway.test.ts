/** The client against a real gateway, whose address and key `tests/servers/test_typescript.py` gives. */

import { describe, expect, it } from "vitest";
import { EthosMemoryProvider, EthosProvider } from "../dist/ethos.js";
import { MemoryBus, newId, OutboxFull, RefusedRequest } from "../dist/index.js";

const url = process.env["MEMORYBUS_GATEWAY"] ?? "";
const key = process.env["MEMORYBUS_KEY"] ?? "";
const bus = () => new MemoryBus({ url, key });

/** Wait for a condition that workers bring about. */
async function eventually<T>(look: () => Promise<T>, wanted: (value: T) => boolean): Promise<T> {
  const until = Date.now() + 60_000;
  for (;;) {
    const value = await look();
    if (wanted(value) || Date.now() > until) return value;
    await new Promise((done) => setTimeout(done, 100));
  }
}

describe("MemoryBus", () => {
  it("recalls what was published, for this person alone", async () => {
    const client = bus();
    const session = client.session("ts-1", { user: "ann" });
    session.turnCompleted("My parrot is called Kiko.", "A fine name.", { ordinal: 0 });
    expect(await client.flush()).toBe(true);
    const ask = (user: string) =>
      client.session("ts-1", { user }).prefetch("What is my parrot called?", { waitSeconds: 5 });
    expect(await eventually(() => ask("ann"), (block) => block.includes("Kiko"))).toContain("Kiko");
    expect(await ask("bob")).toBe("");
    expect((await client.tools()).length).toBeGreaterThan(0);
    const found = await session.callTool("memory_search", { query: "parrot" });
    expect(JSON.stringify(found)).toContain("Kiko");
  });

  it("forgets what was undone", async () => {
    const client = bus();
    const session = client.session("ts-2", { user: "cyd" });
    const receipt = session.turnCompleted("My PIN is 4711.", "Noted.");
    await session.undo(receipt);
    session.turnCompleted("My boat is called Ebba.", "Noted.");
    await client.flush();
    const recall = () => client.recall("boat and PIN", { user: "cyd" });
    const answer = await eventually(recall, ({ text }) => text.includes("Ebba"));
    expect(answer.text).toContain("Ebba");
    expect(answer.text).not.toContain("4711");
  });

  it("sends events again with the same ids while the gateway is away", async () => {
    let away = true;
    const sent: string[] = [];
    const flaky: typeof fetch = async (input, init) => {
      const request = new Request(input, init);
      if (request.url.endsWith("/v1/events")) {
        const body = (await request.clone().json()) as { events: { id: string }[] };
        sent.push(...body.events.map((event) => event.id));
      }
      if (away) throw new TypeError("fetch failed");
      return fetch(request);
    };
    const client = new MemoryBus({ url, key, fetch: flaky, outboxBound: 2 });
    const session = client.session("ts-3", { user: "dan" });
    const first = session.memoryWritten("add", "Dan likes tea.", { store: "user" });
    session.memoryWritten("add", "Dan likes rain.", { store: "user" });
    expect(() => session.memoryWritten("add", "Too many.")).toThrow(OutboxFull);
    expect(await session.prefetch("tea?")).toBe("");
    expect(await client.flush(50)).toBe(false);
    away = false;
    expect(await client.flush()).toBe(true);
    expect(sent.filter((id) => id === first.eventId).length).toBeGreaterThan(1);
  });

  it("loses only the event that is refused", async () => {
    const refused: string[] = [];
    const client = new MemoryBus({ url, key, onRefused: (_, error) => refused.push(error.message) });
    const session = client.session("ts-4", { user: "eve" });
    session.memoryWritten("add", "");
    session.memoryWritten("add", "Eve plays chess.", { store: "user" });
    expect(await client.flush()).toBe(true);
    expect(refused).toHaveLength(1);
    const wrong = new MemoryBus({ url, key: "mbk_x_y" });
    await expect(wrong.tools()).rejects.toThrow(RefusedRequest);
  });

  it("makes ids that sort by time", () => {
    const ids = [1_000, 2_000, 3_000_000_000_000].map((now) => newId(now));
    expect(ids).toEqual([...ids].sort());
    expect(ids[0]).toMatch(/^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/);
  });
});

describe("EthosProvider", () => {
  const ctx = { sessionId: "e-1", sessionKey: "cli:garden", userId: "fay", platform: "cli" };

  it("adds, replaces the whole store, removes by a substring, and is null when nothing is kept", async () => {
    const provider = new EthosProvider(bus());
    expect(await provider.prefetch(ctx)).toBeNull();
    await provider.sync(ctx, []);
    await provider.sync(ctx, [
      { store: "memory", action: "add", content: "The shed needs paint." },
      { store: "user", action: "add", content: "Fay is left-handed." },
      { store: "memory", action: "add", content: "The gate squeaks." },
    ]);
    const read = async () => (await provider.prefetch(ctx))?.content ?? "";
    expect(await eventually(read, (text) => text.includes("left-handed"))).toContain("shed");
    await provider.sync(ctx, [{ store: "memory", action: "remove", content: "", substringMatch: "gate" }]);
    expect(await eventually(read, (text) => !text.includes("gate"))).toContain("shed");
    await provider.sync(ctx, [{ store: "memory", action: "replace", content: "All is painted." }]);
    const replaced = await eventually(read, (text) => !text.includes("shed"));
    expect(replaced.split("\n").sort()).toEqual(["All is painted.", "Fay is left-handed."]);
    const other = { ...ctx, sessionKey: "cli:other", userId: "gus" };
    expect(await provider.prefetch(other)).toBeNull();
  });

  it("keeps the notes of personalities apart", async () => {
    const provider = new EthosProvider(bus());
    const as = (personalityId: string) => ({
      ...ctx,
      sessionKey: "cli:p",
      userId: "hal",
      memoryScope: "per-personality" as const,
      personalityId,
    });
    await provider.sync(as("coach"), [{ store: "memory", action: "add", content: "Runs on Mondays." }]);
    const read = async (who: string) => (await provider.prefetch(as(who)))?.content ?? "";
    expect(await eventually(() => read("coach"), (text) => text !== "")).toContain("Mondays");
    expect(await read("cook")).toBe("");
  });
});

describe("EthosMemoryProvider", () => {
  it("has the five methods over MEMORY.md and USER.md", async () => {
    const provider = new EthosMemoryProvider(bus());
    const ctx = {
      scopeId: "personality:ida",
      sessionId: "e-2",
      sessionKey: "cli:ida",
      platform: "cli",
      workingDir: "/",
    };
    expect(await provider.prefetch(ctx)).toBeNull();
    await provider.sync([{ action: "add", key: "MEMORY.md", content: "The kiln is hot." }], ctx);
    const read = await eventually(() => provider.read("MEMORY.md", ctx), (entry) => entry !== null);
    expect(read).toEqual({ key: "MEMORY.md", content: "The kiln is hot." });
    expect(await provider.search("KILN", ctx)).toHaveLength(1);
    expect(await provider.list(ctx)).toEqual([{ key: "MEMORY.md" }]);
    await provider.sync([{ action: "delete", key: "MEMORY.md" }], ctx);
    expect(await eventually(() => provider.prefetch(ctx), (found) => found === null)).toBeNull();
    await expect(provider.read("notes", ctx)).rejects.toThrow("MEMORY.md");
  });
});
