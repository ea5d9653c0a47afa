package etcd

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

// childEnv is set in the process that TestProxyIsIgnored starts, because the proxy environment is read once per process.
const childEnv = "MESHETCD_TEST_CHILD"

// The client ignores proxy variables, because pods connect to etcd without a proxy too.
func TestProxyIsIgnored(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		c := dial(t, secret(t, Connection{Endpoints: "http://etcd.invalid:2379"}, nil))
		c.config.DialTimeout = time.Second
		if _, err := c.List(t.Context(), "p/", false); err == nil {
			t.Error("want an error for an etcd that does not exist")
		}
		return
	}
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer proxy.Close()
	proxied := make(chan struct{}, 1)
	go func() {
		if connection, err := proxy.Accept(); err == nil {
			proxied <- struct{}{}
			_ = connection.Close()
		}
	}()
	command := exec.Command(os.Args[0], "-test.run=^TestProxyIsIgnored$")
	command.Env = append(os.Environ(), childEnv+"=1", "HTTPS_PROXY=http://"+proxy.Addr().String(), "NO_PROXY=", "no_proxy=")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("the test in the child process failed: %v\n%s", err, out)
	}
	select {
	case <-proxied:
		t.Error("the client connected to etcd through the proxy")
	default:
	}
}
