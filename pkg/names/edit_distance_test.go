package names

import "testing"

func TestEditDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"flag", "flag", 0}, {"ab", "ba", 2},
		{"delection", "deletion", 1}, {"kitten", "sitting", 3},
	} {
		if got := EditDistance(test.a, test.b); got != test.want {
			t.Errorf("%q to %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
