package appwrapper

import (
	"bytes"
	"math"
	"reflect"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// sameTemplate compares what two templates say: the order of fields, white space, the notation of numbers and fields that
// are null make no difference. Clients that apply an unchanged object write all of these as they like.
func sameTemplate(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var left, right any
	if kjson.Unmarshal(a, &left) != nil || kjson.Unmarshal(b, &right) != nil {
		return false
	}
	return reflect.DeepEqual(canonical(left), canonical(right))
}

// canonical drops null fields and writes whole numbers in one way. Nulls in lists stay: there they count.
func canonical(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, field := range value {
			if field != nil {
				out[key] = canonical(field)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = canonical(item)
		}
		return out
	case float64:
		// Beyond 2^53 a float does not tell neighbours apart, so it stays what it is.
		if whole := math.Trunc(value); whole == value && math.Abs(value) < 1<<53 {
			return int64(value)
		}
		return value
	default:
		return value
	}
}
