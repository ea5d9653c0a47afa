package machine

import (
	"net"
	"slices"
	"sync"
)

// ports contains the ports that FreePort has returned: they may not be in use yet.
var ports struct {
	sync.Mutex
	returned []int
}

// FreePort returns a free port that it has not returned before.
func FreePort() (int, error) {
	for {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			return 0, err
		}
		ports.Lock()
		isNew := !slices.Contains(ports.returned, port)
		ports.returned = append(ports.returned, port)
		ports.Unlock()
		if isNew {
			return port, nil
		}
	}
}
