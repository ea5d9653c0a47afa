package admission

import "math"

// Decoding, judging and answering a body takes so many bytes at most, measured with webhooks that decode objects several times.
const (
	perByte   = 16  // of text
	perValue  = 140 // a field of an object, an item of a list, or a list
	perObject = 950 // that has fields
	// deepest is how deep objects and lists may be in each other. Paths to fields are texts, and each of a chain is as long as all before.
	deepest = 100
)

// MemoryOf returns the most memory that decoding, judging and answering a body takes, in bytes, without the body itself. Bodies need not be JSON.
func MemoryOf(body []byte) int64 { return MemoryOfItems(body, 0) }

// MemoryOfItems is [Weigh] for a handler that decodes one value at a time, of those that are so many objects and lists deep: it returns the
// weight of the heaviest.
func MemoryOfItems(body []byte, depth int) int64 {
	var s scale
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			begin := i
			i = textEnd(body, i)
			s.text = int64(i - begin)
			s.heaviest = max(s.heaviest, perByte*s.text)
		case '{', '[':
			if s.level == depth {
				s.begun, s.weight, s.path, s.paths = i, 0, [deepest]int64{}, 0
			}
			if !s.open(body[i] == '{' && i+1 < len(body) && body[i+1] != '}') {
				return math.MaxInt64
			}
		case ',':
			s.weight += perValue
		case '}', ']':
			if s.level--; s.level == depth {
				s.end(i)
			}
		}
	}
	if s.level > depth {
		s.end(len(body))
	}
	return s.heaviest
}

// scale is what [WeighEach] knows of a body at one of its bytes.
type scale struct {
	heaviest      int64
	weight, paths int64 // of the value that is being weighed, and the most that paths to its fields take
	begun         int   // where it begins
	level         int
	text          int64          // length of the last
	path          [deepest]int64 // to each object and list that is open
}

// open goes into an object or a list. It returns false where that is too deep.
func (s *scale) open(fields bool) bool {
	if s.level < 0 || s.level == deepest {
		return false
	}
	s.weight += perValue
	if fields {
		s.weight += perObject
	}
	var before, all int64
	if s.level > 0 {
		before = s.path[s.level-1]
	}
	s.path[s.level] = before + s.text
	s.level++
	for _, length := range s.path[:s.level] {
		all += length
	}
	s.paths = max(s.paths, all)
	return true
}

// end finishes the weighing of a value.
func (s *scale) end(at int) {
	s.heaviest = max(s.heaviest, s.weight+s.paths+perByte*int64(at-s.begun))
}

// textEnd returns where the text ends that begins at a quote.
func textEnd(body []byte, begin int) int {
	for i := begin + 1; i < len(body); i++ {
		switch body[i] {
		case '"':
			return i
		case '\\':
			i++ // what is escaped
		}
	}
	return len(body)
}
