/** The bus as a TypeScript agent uses it: the names are those of the Python client. */

import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./api.js";
import { errorOf, GatewayUnavailable, type RefusedRequest } from "./errors.js";
import { newId } from "./ids.js";
import { Outbox } from "./outbox.js";

export { GatewayUnavailable, OutboxFull, RefusedRequest, type Problem } from "./errors.js";
export { newId } from "./ids.js";

type Schemas = components["schemas"];
export type PublishedEvent = Schemas["PublishedEvent"];
export type AgentEvent = PublishedEvent["event"];
export type RecallAnswer = Schemas["RecallAnswer"];
export type Memories = Schemas["Memories"];
export type Message = Record<string, unknown>;

/** Whose memory; what is left out follows from the key. */
export interface Scope {
  agent?: string;
  user?: string;
  workspace?: string;
  platform?: string;
}

export interface MemoryBusOptions {
  /** Where `memorybus serve --api` listens. */
  url?: string;
  /** A key that `memorybus key create` made. */
  key?: string;
  /** The most events that wait in memory while the gateway is away. */
  outboxBound?: number;
  /** Called for each event that the gateway refused; the default writes to the console. */
  onRefused?: (event: PublishedEvent, error: RefusedRequest) => void;
  /** Another fetch, for tests and proxies. */
  fetch?: typeof fetch;
}

/** What is known of an event when a method returns: it is in this process's memory. */
export interface Receipt {
  eventId: string;
}

interface SessionRef {
  id: string;
}

export class MemoryBus {
  /** The generated client, for requests that have no method here. */
  readonly api: Client<paths>;
  private readonly outbox: Outbox<PublishedEvent>;

  constructor(options: MemoryBusOptions = {}) {
    const headers = options.key ? { authorization: `Bearer ${options.key}` } : {};
    this.api = createClient<paths>({
      baseUrl: options.url ?? "http://127.0.0.1:8686",
      headers,
      ...(options.fetch ? { fetch: options.fetch } : {}),
    });
    this.outbox = new Outbox<PublishedEvent>(
      (events) => this.ask(() => this.api.POST("/v1/events", { body: { events } })).then(() => {}),
      options.outboxBound ?? 1_000,
      options.onRefused ?? ((event, error) => console.error("memorybus:", event.id, error.message)),
    );
  }

  /** Return a session; it starts with its first event. */
  session(id: string = newId(), scope: Scope = {}): Session {
    return new Session(this, id, scope);
  }

  /** How many events are not known to be accepted by the gateway. */
  get unsent(): number {
    return this.outbox.unsent;
  }

  /** Take an event, and return at once; it is sent in the background (G9). */
  publish(event: PublishedEvent): Receipt {
    const eventId = event.id || newId();
    this.outbox.add({ ...event, id: eventId, at: event.at || Date.now() });
    return { eventId };
  }

  /** Wait until the gateway has accepted all events; then they survive its process (G1). */
  flush(timeoutMs = 10_000): Promise<boolean> {
    return this.outbox.flush(timeoutMs);
  }

  /** Ask every provider now; for people and tools, not for a turn. */
  recall(
    question: string,
    options: Scope & Partial<Omit<Schemas["RecallQuery"], "question">> = {},
  ): Promise<RecallAnswer> {
    return this.ask(() => this.api.POST("/v1/recall", { body: { question, ...options } }));
  }

  /** Return the tools that providers offer the model, as OpenAI function objects. */
  async tools(): Promise<Schemas["ToolsOffered"]["tools"]> {
    return (await this.ask(() => this.api.GET("/v1/tools"))).tools;
  }

  /** List what a provider keeps of a person. */
  memories(
    options: Scope & { provider?: string; containing?: string; skip?: number; limit?: number } = {},
  ): Promise<Memories> {
    return this.ask(() => this.api.GET("/v1/memories", { params: { query: options } }));
  }

  /** Send what waits, at most `timeoutMs`, and stop. */
  async close(timeoutMs = 2_000): Promise<boolean> {
    const sent = await this.outbox.flush(timeoutMs);
    this.outbox.close();
    return sent;
  }

  /** Send a request; return its answer, or throw what the gateway answered. */
  async ask<T>(
    send: () => Promise<{ data?: T; error?: unknown; response: Response }>,
  ): Promise<NonNullable<T>> {
    let reply;
    try {
      reply = await send();
    } catch (error) {
      throw new GatewayUnavailable(error instanceof Error ? error.message : String(error));
    }
    if (!reply.response.ok) throw errorOf(reply.response.status, reply.error);
    return reply.data as NonNullable<T>;
  }
}

export interface TurnDetails {
  messages?: Message[];
  ordinal?: number;
  userName?: string;
  assistantName?: string;
  model?: string;
  tokensIn?: number;
  tokensOut?: number;
  eventId?: string;
  at?: number;
}

export interface MemoryWrite {
  store?: "memory" | "user";
  oldText?: string;
  eventId?: string;
}

export class Session {
  constructor(
    private readonly bus: MemoryBus,
    readonly id: string,
    readonly scope: Scope,
  ) {}

  // -- what happens; each returns at once ---------------------------------------------------------

  turnStarted(message: string, details: { number?: number; model?: string } = {}): Receipt {
    return this.publish({ type: "TurnStarted", message, ...details });
  }

  turnCompleted(user: string, assistant: string, details: TurnDetails = {}): Receipt {
    const { eventId, at, userName, assistantName, tokensIn, tokensOut, ...rest } = details;
    const named = defined({
      user_name: userName,
      assistant_name: assistantName,
      tokens_in: tokensIn,
      tokens_out: tokensOut,
    });
    return this.publish({ type: "TurnCompleted", user, assistant, ...rest, ...named }, eventId, at);
  }

  memoryWritten(
    action: "add" | "replace" | "remove",
    content = "",
    { store = "memory", oldText = "", eventId }: MemoryWrite = {},
  ): Receipt {
    const event = { type: "MemoryWritten", action, content, store, old_text: oldText } as const;
    return this.publish(event, eventId);
  }

  compressing(messages: Message[], compressionCount = 0): Receipt {
    const compression_count = compressionCount;
    return this.publish({ type: "ContextCompressing", messages, compression_count });
  }

  delegated(task: string, result: string, childSession = ""): Receipt {
    return this.publish({ type: "Delegated", task, result, child_session: childSession });
  }

  ended(reason = "", messageCount = 0): Receipt {
    return this.publish({ type: "SessionEnded", reason, message_count: messageCount });
  }

  private publish(event: AgentEvent, id = "", at = 0): Receipt {
    return this.bus.publish({ ...this.scope, session: this.id, event, id, at });
  }

  // -- lineage; each waits for the gateway, behind the events published before ---------------------

  async branch(newSession = newId(), title = ""): Promise<Session> {
    const body = { ...this.scope, new_id: newSession, title };
    await this.step(() => this.bus.api.POST("/v1/sessions/{session}/branch", this.request(body)));
    return this.named(newSession);
  }

  async switchedTo(newSession: string, reset = false): Promise<Session> {
    const body = { ...this.scope, new_id: newSession, reset };
    await this.step(() => this.bus.api.POST("/v1/sessions/{session}/switch", this.request(body)));
    return this.named(newSession);
  }

  async compressed(newSession = ""): Promise<Session> {
    const body = { ...this.scope, new_id: newSession };
    const place = await this.step(() =>
      this.bus.api.POST("/v1/sessions/{session}/compress", this.request(body)),
    );
    return this.named((place.session as SessionRef).id);
  }

  /** Take back what was said last: providers forget what they learned from these events. */
  async undo(...events: (Receipt | string)[]): Promise<Session> {
    const ids = events.map((event) => (typeof event === "string" ? event : event.eventId));
    const body = { ...this.scope, events: ids };
    await this.step(() => this.bus.api.POST("/v1/sessions/{session}/undo", this.request(body)));
    return this;
  }

  private async step<T>(
    send: () => Promise<{ data?: T; error?: unknown; response: Response }>,
  ): Promise<NonNullable<T>> {
    if (!(await this.bus.flush())) throw new GatewayUnavailable("earlier events are not sent yet");
    return this.bus.ask(send);
  }

  private named(id: string): Session {
    return new Session(this.bus, id, this.scope);
  }

  // -- recall ---------------------------------------------------------------------------------------

  /**
   * Return the memory block for a prompt, or "": also if the gateway does not answer, so that no
   * agent breaks for want of memory (G9).
   */
  async prefetch(
    query = "",
    options: { known?: Message[]; waitSeconds?: number } = {},
  ): Promise<string> {
    const rest = defined({ known: options.known, wait: options.waitSeconds });
    const body = { ...this.scope, query, ...rest };
    try {
      return (
        await this.bus.ask(() =>
          this.bus.api.POST("/v1/sessions/{session}/prefetch", this.request(body)),
        )
      ).block;
    } catch (error) {
      if (error instanceof GatewayUnavailable) return "";
      throw error;
    }
  }

  /** Ask for memories ahead of the next turn. */
  async queuePrefetch(query: string, answer = ""): Promise<void> {
    const body = { ...this.scope, query, answer };
    await this.step(() =>
      this.bus.api.POST("/v1/sessions/{session}/queue-prefetch", this.request(body)),
    );
  }

  /** Return what providers add to the session's system prompt: the same bytes for its life. */
  async systemPrompt(): Promise<string> {
    const params = { path: { session: this.id }, query: this.scope };
    const reply = await this.bus.ask(() =>
      this.bus.api.GET("/v1/sessions/{session}/system-prompt", { params }),
    );
    return reply.block;
  }

  /** Call a provider's tool for the model. */
  callTool(
    tool: string,
    args: Record<string, unknown> = {},
    timeoutSeconds = 10,
  ): Promise<Record<string, unknown>> {
    const params = { path: { session: this.id, tool } };
    const body = { ...this.scope, arguments: args, timeout: timeoutSeconds, id: newId() };
    return this.bus.ask(() =>
      this.bus.api.POST("/v1/sessions/{session}/tools/{tool}", { params, body }),
    );
  }

  private request<T>(body: T): { params: { path: { session: string } }; body: T } {
    return { params: { path: { session: this.id } }, body };
  }
}

/** Return the fields that are set. */
function defined<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const set = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as { [K in keyof T]?: NonNullable<T[K]> };
}
