package machine

import (
	"net"
	"slices"
	"sync"
)

// ports are the ports that FreePort returned, which may not be in use yet.
var ports struct {
	sync.Mutex
	given []int
}

// FreePort returns a free port, never the same one twice.
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
		fresh := !slices.Contains(ports.given, port)
		ports.given = append(ports.given, port)
		ports.Unlock()
		if fresh {
			return port, nil
		}
	}
}
