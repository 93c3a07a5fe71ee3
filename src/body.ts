// Reading a JSON request body: its media type, its size and its encoding are checked before it is parsed, and the
// size while it is read, because a chunked body announces none.

import { ApiError } from "./errors.ts";
import { parseJson } from "./json.ts";

/** In bytes. */
export const BODY_LIMIT = 64 * 1024;
const JSON_TYPE = /^(application\/json|[^\s/]+\/[^\s/]+\+json)$/i; // the suffix: RFC 6839, section 3.1
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** The request's body, with exact integers. Throws 415, 413 or 400. */
export async function readJson(request: Request): Promise<unknown> {
  const [mediaType = ""] = (request.headers.get("Content-Type") ?? "").split(";");
  if (!JSON_TYPE.test(mediaType.trim())) {
    throw new ApiError("unsupported_media_type", "The body must be sent as Content-Type: application/json.");
  }
  const text = await readText(request);
  try {
    return parseJson(text);
  } catch {
    // Not only a SyntaxError: brackets nested by the thousand exhaust the parser's stack.
    throw new ApiError(
      "bad_request",
      'The body is not valid JSON; it must be one JSON object, such as {"name": "Rex", "categoryId": 1}.',
    );
  }
}

async function readText(request: Request): Promise<string> {
  const announced = request.headers.get("Content-Length");
  if (Number(announced) > BODY_LIMIT) throw tooLarge();
  // HTTP holds a body to the length that it announces, and reading it whole is several times quicker.
  const bytes = await (announced === null ? readAtMost(BODY_LIMIT + 1, request) : request.arrayBuffer());
  if (bytes.byteLength > BODY_LIMIT) throw tooLarge();
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw new ApiError("bad_request", "The body is not valid UTF-8.");
  }
}

async function readAtMost(length: number, { body }: Request): Promise<Uint8Array> {
  const read = await body?.getReader({ mode: "byob" }).readAtLeast(length, new Uint8Array(length));
  return read?.value ?? new Uint8Array();
}

const tooLarge = () => new ApiError("content_too_large", `The body must be at most ${BODY_LIMIT} bytes.`);
