/** Events that wait for the gateway, in memory: sent in order, by batches, again with the same ids. */

import { GatewayUnavailable, OutboxFull, RefusedRequest } from "./errors.js";

/** Sends a batch; it throws `RefusedRequest`, or `GatewayUnavailable`. */
export type SendBatch<T> = (batch: T[]) => Promise<void>;

/** Called with an event that the gateway refused, and why: no other waits for it. */
export type OnRefused<T> = (event: T, error: RefusedRequest) => void;

const BATCH = 100;
const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 5_000;

export class Outbox<T> {
  private waiting: T[] = [];
  private sending: Promise<void> | undefined;
  private closed = false;

  /**
   * @param send sends a batch.
   * @param bound the most events that wait (G10).
   * @param onRefused called for each event that was refused.
   */
  constructor(
    private readonly send: SendBatch<T>,
    private readonly bound: number,
    private readonly onRefused: OnRefused<T>,
  ) {}

  /** How many events are not known to be accepted. */
  get unsent(): number {
    return this.waiting.length;
  }

  /** Take an event, and begin to send. */
  add(event: T): void {
    if (this.waiting.length >= this.bound) throw new OutboxFull(this.bound);
    this.waiting.push(event);
    this.sending ??= this.drain().finally(() => (this.sending = undefined));
  }

  /** Wait until all events were sent, at most `timeoutMs`; return whether they were. */
  async flush(timeoutMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((done) => (timer = setTimeout(done, timeoutMs)));
    await Promise.race([this.sending ?? Promise.resolve(), late]);
    clearTimeout(timer);
    return this.waiting.length === 0;
  }

  /** Stop trying; what was not sent is lost with the process. */
  close(): void {
    this.closed = true;
  }

  private async drain(): Promise<void> {
    let delay = FIRST_DELAY_MS;
    while (this.waiting.length > 0 && !this.closed) {
      const batch = this.waiting.slice(0, BATCH);
      try {
        await this.sendBatch(batch);
        this.waiting.splice(0, batch.length);
        delay = FIRST_DELAY_MS;
      } catch (error) {
        if (!(error instanceof GatewayUnavailable)) throw error;
        await sleep(Math.max(delay, error.retryAfter * 1_000));
        delay = Math.min(2 * delay, LONGEST_DELAY_MS);
      }
    }
  }

  /** Send a batch; if it is refused, its events one by one, so that only the wrong ones are lost. */
  private async sendBatch(batch: T[]): Promise<void> {
    try {
      await this.send(batch);
    } catch (error) {
      if (!(error instanceof RefusedRequest)) throw error;
      if (batch.length === 1) this.onRefused(batch[0]!, error);
      else for (const event of batch) await this.sendBatch([event]);
    }
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms).unref());
}
