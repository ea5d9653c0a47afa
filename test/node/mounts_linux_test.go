package node

import "testing"

func TestNUMANodesHaveMinProcessors(t *testing.T) {
	for processors, want := range map[int]int{1: 16, 2: 8, 3: 6, 6: 3, 8: 2, 9: 2, 12: 2, 16: 1, 64: 1} {
		if got := numaNodes(processors); got != want {
			t.Errorf("%d processors: got %d nodes, want %d", processors, got, want)
		}
	}
}
