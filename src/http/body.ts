// Reading a JSON request body: its media type, its size and its encoding are checked before it is parsed, and the size
// while it is read, because a chunked body announces none. What the JSON must be is validated with the rest of a request.

import * as z from "zod/mini";
import { ApiError } from "./errors.ts";
import { parseJson } from "../values/json.ts";

/** In bytes. */
export const BODY_LIMIT = 64 * 1024;
// The suffix: RFC 6839, section 3.1; a token: RFC 9110, section 5.6.2.
const JSON_TYPE = /^(application\/json|[!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+\+json)$/i;
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/** The text of a request's body that is sent as JSON. Throws 415, 413, and 400 where it breaks off or is no UTF-8. */
export async function readJsonText(request: Request): Promise<string> {
  const [mediaType = ""] = (request.headers.get("Content-Type") ?? "").split(";");
  const encoding = request.headers.get("Content-Encoding") ?? "identity";
  const isJson = JSON_TYPE.test(mediaType.trim());
  const isPlain = encoding.toLowerCase() === "identity";
  if (!isJson || !isPlain) {
    const how = [
      ...(isJson ? [] : ["as Content-Type: application/json"]),
      ...(isPlain ? [] : ["without a Content-Encoding"]),
    ];
    // RFC 9110, section 15.5.16: this header tells that it is not the media type alone.
    const headers: Record<string, string> = isPlain ? {} : { "Accept-Encoding": "identity" };
    throw new ApiError("unsupported_media_type", `The body must be sent ${how.join(" and ")}.`, headers);
  }
  return decode(await readBytes(request));
}

/** A schema of a text that is JSON of `schema`; integers are bigints. */
export function jsonTextOf<Shape extends z.core.$ZodShape>(schema: z.ZodMiniObject<Shape>) {
  const named = Object.keys(schema.shape);
  const parsed = z.transform((text: string, { issues }): unknown => {
    try {
      return parseJson(text, named);
    } catch {
      issues.push({ code: "custom", message: "The body is not valid JSON; it must be one JSON object", input: text });
      return z.NEVER;
    }
  });
  return z.pipe(parsed, schema);
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
