package cluster

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
)

// Ports below the range from which the kernel takes ports for outgoing connections, so that none of those can take a
// reserved port away between reservation and use.
const (
	firstPort = 20000
	lastPort  = 31999
)

var errNoPort = errors.New("no free port")

// freePorts picks count ports that nothing listens on and no process has reserved, from start upwards and around.
func freePorts(count, start int, reserved []int, free func(port int) bool) ([]int, error) {
	size := lastPort - firstPort + 1
	var ports []int
	for offset := range size {
		if len(ports) == count {
			return ports, nil
		}
		port := firstPort + (start+offset)%size
		if !slices.Contains(reserved, port) && free(port) {
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("finding %d ports between %d and %d: %w", count, firstPort, lastPort, errNoPort)
}

func listens(port int) bool {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
