// Reading a JSON request body: its media type, its size and its encoding are checked before it is parsed, and the
// size while it is read, because a chunked body announces none.

import { ApiError } from "./errors.ts";
import { parseJson } from "./json.ts";

/** In bytes. */
export const BODY_LIMIT = 64 * 1024;
const JSON_TYPE = /^(application\/json|[^\s/]+\/[^\s/]+\+json)$/i; // the suffix: RFC 6839, section 3.1
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** The request's body; integers of the outermost object are bigints. Throws 415, 413 or 400. */
export async function readJson(request: Request): Promise<unknown> {
  const [mediaType = ""] = (request.headers.get("Content-Type") ?? "").split(";");
  if (!JSON_TYPE.test(mediaType.trim())) {
    throw new ApiError("unsupported_media_type", "The body must be sent as Content-Type: application/json.");
  }
  const encoding = request.headers.get("Content-Encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    // RFC 9110, section 15.5.16: this header tells that it is not the media type.
    const headers = { "Accept-Encoding": "identity" };
    throw new ApiError("unsupported_media_type", "The body must be sent without a Content-Encoding.", headers);
  }
  const text = decode(await readBytes(request));
  try {
    return parseJson(text);
  } catch {
    throw new ApiError("bad_request", "The body is not valid JSON; it must be one JSON object.");
  }
}

async function readBytes(request: Request): Promise<ArrayBuffer | Uint8Array> {
  const announced = request.headers.get("Content-Length");
  if (Number(announced) > BODY_LIMIT) throw tooLarge();
  // HTTP holds a body to the length that it announces, and reading it whole is several times quicker.
  const reading = announced === null ? readAtMost(BODY_LIMIT + 1, request) : request.arrayBuffer();
  const bytes = await reading.catch(() => {
    throw new ApiError(
      "bad_request",
      "The body cannot be read to its end: it broke off, or is not sent as HTTP has it.",
    );
  });
  if (bytes.byteLength > BODY_LIMIT) throw tooLarge();
  return bytes;
}

async function readAtMost(length: number, { body }: Request): Promise<Uint8Array> {
  const read = await body?.getReader({ mode: "byob" }).readAtLeast(length, new Uint8Array(length));
  return read?.value ?? new Uint8Array();
}

function decode(bytes: ArrayBuffer | Uint8Array): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw new ApiError("bad_request", "The body is not valid UTF-8.");
  }
}

const tooLarge = () => new ApiError("content_too_large", `The body must be at most ${BODY_LIMIT} bytes.`);
