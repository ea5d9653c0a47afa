package admission

import "math"

// Upper limits of the memory for decoding and evaluating a body, measured with webhooks that decode objects several times.
const (
	bytesPerByte   = 16  // for each byte of the body
	bytesPerValue  = 140 // for each field, item or list
	bytesPerObject = 950 // for each object with fields
	// maxDepth limits nested objects and lists, because the length of field paths grows with the square of the depth.
	maxDepth = 100
)

// MemoryOf returns the maximum memory in bytes for decoding and evaluating a body, without the body itself. The body need not be valid JSON.
func MemoryOf(body []byte) int64 { return MemoryOfItems(body, 0) }

// MemoryOfItems is like [MemoryOf] for a handler that decodes the items at the given depth one by one: it returns the memory of the largest item.
func MemoryOfItems(body []byte, depth int) int64 {
	var s estimator
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			begin := i
			i = stringEnd(body, i)
			s.lastStringLength = int64(i - begin)
			s.maxWeight = max(s.maxWeight, bytesPerByte*s.lastStringLength)
		case '{', '[':
			if s.depth == depth {
				s.start, s.weight, s.pathLengths, s.maxPathBytes = i, 0, [maxDepth]int64{}, 0
			}
			if !s.open(body[i] == '{' && i+1 < len(body) && body[i+1] != '}') {
				return math.MaxInt64
			}
		case ',':
			s.weight += bytesPerValue
		case '}', ']':
			if s.depth--; s.depth == depth {
				s.end(i)
			}
		}
	}
	if s.depth > depth {
		s.end(len(body))
	}
	return s.maxWeight
}

// estimator is the state of MemoryOfItems at one byte of the body.
type estimator struct {
	maxWeight        int64
	weight           int64 // of the current item
	maxPathBytes     int64 // the maximum total length of the paths of its open objects and lists
	start            int   // offset of the current item
	depth            int
	lastStringLength int64
	pathLengths      [maxDepth]int64 // of the open objects and lists
}

// open enters an object or a list, and returns false if maxDepth is exceeded or brackets are unbalanced.
func (s *estimator) open(hasFields bool) bool {
	if s.depth < 0 || s.depth == maxDepth {
		return false
	}
	s.weight += bytesPerValue
	if hasFields {
		s.weight += bytesPerObject
	}
	var parentLength, pathBytes int64
	if s.depth > 0 {
		parentLength = s.pathLengths[s.depth-1]
	}
	s.pathLengths[s.depth] = parentLength + s.lastStringLength
	s.depth++
	for _, length := range s.pathLengths[:s.depth] {
		pathBytes += length
	}
	s.maxPathBytes = max(s.maxPathBytes, pathBytes)
	return true
}

// end completes the estimate of an item.
func (s *estimator) end(at int) {
	s.maxWeight = max(s.maxWeight, s.weight+s.maxPathBytes+bytesPerByte*int64(at-s.start))
}

// stringEnd returns the offset of the closing quote of a string.
func stringEnd(body []byte, begin int) int {
	for i := begin + 1; i < len(body); i++ {
		switch body[i] {
		case '"':
			return i
		case '\\':
			i++ // the escaped character
		}
	}
	return len(body)
}
