/**
 * memorybus as a memory provider of Ethos, in both forms of its contract.
 *
 * The two stores of the contract are the two stores of the bus, as the provider `builtin` keeps them.
 * The owner of `memory` is the contract's key (`sessionKey`, or `sessionKey:personalityId` where
 * `memoryScope` is `per-personality`), which is the agent here; the owner of `user` is `userId`, or
 * `sessionKey` without one. So a chat sees no other chat's notes. The key of the gateway needs
 * `--agent '*' --user '*'`.
 */

import { type MemoryBus, type Scope, type Session } from "./index.js";

export type StoreName = "memory" | "user";

/** The context of the form with two methods. */
export interface LoadContext {
  sessionId: string;
  sessionKey: string;
  userId?: string;
  platform: string;
  workingDir?: string;
  personalityId?: string;
  memoryScope?: "global" | "per-personality";
  query?: string;
}

export interface StoreUpdate {
  store: StoreName;
  action: "add" | "replace" | "remove";
  content: string;
  substringMatch?: string;
}

export interface LoadedContext {
  content: string;
  source: "custom";
  truncated: boolean;
}

const PROVIDER = "builtin";
const MOST_ENTRIES = 1_000;
const SETTLE_MS = 5_000;
const POLL_MS = 50;

/** The entries of an owner's two stores, read from and written to the bus. */
class Stores {
  private readonly written = new Map<string, string>();

  constructor(private readonly bus: MemoryBus) {}

  /** Return the entries of a store; what this process wrote is among them. */
  async entries(scope: Scope, store: StoreName): Promise<string[]> {
    const last = this.written.get(keyOf(scope, store));
    const until = Date.now() + SETTLE_MS;
    for (;;) {
      const page = await this.bus.memories({ ...scope, provider: PROVIDER, limit: MOST_ENTRIES });
      const texts = page.memories.filter((each) => each.kind === store).map((each) => each.text);
      if (last === undefined || texts.includes(last) || Date.now() > until) return texts;
      await new Promise((done) => setTimeout(done, POLL_MS));
    }
  }

  add(session: Session, store: StoreName, text: string): void {
    session.memoryWritten("add", text, { store });
    this.written.set(keyOf(session.scope, store), text);
  }

  remove(session: Session, store: StoreName, entries: string[]): void {
    for (const entry of entries) session.memoryWritten("remove", "", { store, oldText: entry });
    const key = keyOf(session.scope, store);
    if (entries.includes(this.written.get(key) ?? "")) this.written.delete(key);
  }

  /** Apply one update; `replace` replaces the whole store, `remove` each line with the text. */
  async apply(session: Session, update: StoreUpdate): Promise<void> {
    const { store, action, content } = update;
    if (action === "add") return this.add(session, store, content);
    const entries = await this.entries(session.scope, store);
    if (action === "replace") {
      this.remove(session, store, entries.filter((entry) => entry !== content));
      if (content && !entries.includes(content)) this.add(session, store, content);
      return;
    }
    const match = update.substringMatch ?? "";
    for (const entry of match ? entries.filter((each) => each.includes(match)) : []) {
      const rest = entry.split("\n").filter((line) => !line.includes(match)).join("\n");
      this.remove(session, store, [entry]);
      if (rest.trim()) this.add(session, store, rest);
    }
  }
}

/** The form with two methods: `prefetch(ctx)` and `sync(ctx, updates)`. */
export class EthosProvider {
  private readonly stores: Stores;

  constructor(private readonly bus: MemoryBus) {
    this.stores = new Stores(bus);
  }

  /** Return what is known for the present message, or the stores without one; null if nothing is. */
  async prefetch(ctx: LoadContext): Promise<LoadedContext | null> {
    const content = ctx.query
      ? await this.session(ctx).prefetch(ctx.query)
      : await this.both(scopeOf(ctx));
    return content ? { content, source: "custom", truncated: false } : null;
  }

  /** Apply updates in their order; they are accepted by the gateway when this returns. */
  async sync(ctx: LoadContext, updates: StoreUpdate[]): Promise<void> {
    if (updates.length === 0) return;
    const session = this.session(ctx);
    for (const update of updates) await this.stores.apply(session, update);
    if (!(await this.bus.flush())) throw new Error("the gateway has not accepted the updates yet");
  }

  private session(ctx: LoadContext): Session {
    return this.bus.session(ctx.sessionId, scopeOf(ctx));
  }

  private async both(scope: Scope): Promise<string> {
    const [memory, user] = await Promise.all([
      this.stores.entries(scope, "memory"),
      this.stores.entries(scope, "user"),
    ]);
    return [...memory, ...user].join("\n");
  }
}

/** The context of the form with five methods. */
export interface MemoryContext {
  scopeId: string;
  sessionId: string;
  sessionKey: string;
  platform: string;
  workingDir: string;
}

export interface MemoryEntry {
  key: string;
  content: string;
}

export type KeyedUpdate =
  | { action: "add" | "replace"; key: string; content: string }
  | { action: "remove"; key: string; substringMatch: string }
  | { action: "delete"; key: string };

const STORE_OF_KEY: Record<string, StoreName> = { "MEMORY.md": "memory", "USER.md": "user" };

/** The form with five methods; its keys are `MEMORY.md` and `USER.md`, and no others. */
export class EthosMemoryProvider {
  private readonly stores: Stores;

  constructor(private readonly bus: MemoryBus) {
    this.stores = new Stores(bus);
  }

  async prefetch(ctx: MemoryContext): Promise<{ entries: MemoryEntry[] } | null> {
    const entries = await this.all(ctx);
    return entries.length > 0 ? { entries } : null;
  }

  async read(key: string, ctx: MemoryContext): Promise<MemoryEntry | null> {
    const texts = await this.stores.entries(keyedScope(ctx), storeOf(key));
    return texts.length > 0 ? { key, content: texts.join("\n") } : null;
  }

  async search(query: string, ctx: MemoryContext, opts: { limit?: number } = {}): Promise<MemoryEntry[]> {
    const words = query.toLowerCase();
    const entries = await this.all(ctx);
    const found = entries.filter((entry) => entry.content.toLowerCase().includes(words));
    return found.slice(0, opts.limit ?? found.length);
  }

  async sync(updates: KeyedUpdate[], ctx: MemoryContext): Promise<void> {
    if (updates.length === 0) return;
    const session = this.bus.session(ctx.sessionId, keyedScope(ctx));
    for (const update of updates) await this.stores.apply(session, storeUpdate(update));
    if (!(await this.bus.flush())) throw new Error("the gateway has not accepted the updates yet");
  }

  async list(ctx: MemoryContext, opts: { limit?: number } = {}): Promise<{ key: string }[]> {
    const keys = (await this.all(ctx)).map(({ key }) => ({ key }));
    return keys.slice(0, opts.limit ?? keys.length);
  }

  private async all(ctx: MemoryContext): Promise<MemoryEntry[]> {
    const read = await Promise.all(Object.keys(STORE_OF_KEY).map((key) => this.read(key, ctx)));
    return read.filter((entry) => entry !== null);
  }
}

function scopeOf(ctx: LoadContext): Scope {
  const personal = ctx.memoryScope === "per-personality" && ctx.personalityId;
  const agent = personal ? `${ctx.sessionKey}:${ctx.personalityId}` : ctx.sessionKey;
  return { agent, user: ctx.userId ?? ctx.sessionKey, platform: ctx.platform };
}

function keyedScope(ctx: MemoryContext): Scope {
  return { agent: ctx.scopeId, user: ctx.sessionKey, platform: ctx.platform };
}

function storeOf(key: string): StoreName {
  const store = STORE_OF_KEY[key];
  if (!store) throw new Error(`memorybus keeps ${Object.keys(STORE_OF_KEY).join(" and ")}, not ${key}`);
  return store;
}

function storeUpdate(update: KeyedUpdate): StoreUpdate {
  const store = storeOf(update.key);
  switch (update.action) {
    case "delete":
      return { store, action: "replace", content: "" };
    case "remove":
      return { store, action: "remove", content: "", substringMatch: update.substringMatch };
    default:
      return { store, action: update.action, content: update.content };
  }
}

function keyOf(scope: Scope, store: StoreName): string {
  return JSON.stringify([scope.agent, scope.user, store]);
}
