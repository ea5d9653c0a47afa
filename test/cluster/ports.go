package cluster

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
)

// The range of ports is below the range of the kernel for outgoing connections, so no connection uses a reserved port.
const (
	firstPort = 20000
	lastPort  = 31999
)

var errNoPort = errors.New("no free port")

// freePorts returns count ports without listener or reservation, from the offset start in the range upwards, and then from the first port.
func freePorts(count, start int, reserved []int, free func(port int) bool) ([]int, error) {
	size := lastPort - firstPort + 1
	var ports []int
	for offset := 0; len(ports) < count; offset++ {
		if offset == size {
			return nil, fmt.Errorf("finding %d ports between %d and %d: %w", count, firstPort, lastPort, errNoPort)
		}
		port := firstPort + (start+offset)%size
		if !slices.Contains(reserved, port) && free(port) {
			ports = append(ports, port)
		}
	}
	return ports, nil
}

// isFree reports whether no program listens on a port.
func isFree(port int) bool {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
