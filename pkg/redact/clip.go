package redact

import "unicode/utf8"

// MaxNote is the maximum length of the note of an Event in bytes. The API server rejects more than 1 KiB.
const MaxNote = 1000

// Clip redacts a text, limits it to the given number of bytes, at a character boundary, and marks clipped texts with "...". A credential
// that is cut off would not be recognized later.
func Clip(text string, limit int) string {
	const mark = "..."
	text = Text(text)
	if len(text) <= limit {
		return text
	}
	if limit <= len(mark) {
		return mark[:max(limit, 0)]
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
