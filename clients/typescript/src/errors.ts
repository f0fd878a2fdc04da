/** What goes wrong between an agent and its gateway. */

/** A problem as the gateway describes it (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  retry_after?: number;
}

/** The gateway refused a request; sending it again changes nothing. */
export class RefusedRequest extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
    this.name = "RefusedRequest";
  }
}

/** The gateway cannot be reached, or cannot serve now; the same request may succeed later. */
export class GatewayUnavailable extends Error {
  constructor(
    message: string,
    readonly retryAfter: number = 0,
  ) {
    super(message);
    this.name = "GatewayUnavailable";
  }
}

/** The outbox has its bound: the event was not accepted. */
export class OutboxFull extends Error {
  constructor(bound: number) {
    super(`${bound} events wait for the gateway: none is accepted until it answers`);
    this.name = "OutboxFull";
  }
}

/** Return the error of a response: a refusal, or a state that may pass. */
export function errorOf(status: number, body: unknown): RefusedRequest | GatewayUnavailable {
  const problem = asProblem(status, body);
  const passes = status === 408 || status === 429 || status >= 500;
  return passes
    ? new GatewayUnavailable(problem.detail, problem.retry_after ?? 0)
    : new RefusedRequest(problem);
}

function asProblem(status: number, body: unknown): Problem {
  if (typeof body === "object" && body !== null && "detail" in body) return body as Problem;
  return { type: "about:blank", title: `status ${status}`, status, detail: `status ${status}` };
}
