package meshevents

import (
	"encoding/json"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
)

// The user of namespace team can neither access the keys of namespace team-b nor give itself another role.
func TestUserAccessesOnlyKeysOfItsNamespace(t *testing.T) {
	server := startEtcd(t)
	enableAuth(t, server)
	connection, err := json.Marshal(map[string]string{"endpoints": server.url(), "root_prefix": "models", "userid": "root", "password": "secret"})
	must(t, err)
	source := map[string][]byte{meshetcd.ConnectionKey: connection}
	root, err := meshetcd.New(source)
	must(t, err)
	defer root.Close()
	account, err := meshetcd.NewAccount(source, "team", "1")
	must(t, err)
	for range 2 { // the second run changes nothing
		must(t, root.Ensure(t.Context(), account))
	}

	user := login(t, server, account.Name, account.Password)
	for key, denied := range map[string]bool{
		"models/mm_ns/team/mm/modelmesh-serving/registry/a": false, "models/mm_ns/team/litelinks/a": false,
		"models/mm_ns/team-b/mm/a": true, "models/mm_ns/team": true, "models/mm/a": true, "other": true,
	} {
		if _, err := user.Put(t.Context(), key, "x"); errors.Is(err, rpctypes.ErrPermissionDenied) != denied || !denied && err != nil {
			t.Errorf("put %s: %v", key, err)
		}
		if _, err := user.Get(t.Context(), key); errors.Is(err, rpctypes.ErrPermissionDenied) != denied || !denied && err != nil {
			t.Errorf("get %s: %v", key, err)
		}
	}
	if _, err := user.UserGrantRole(t.Context(), account.Name, "root"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("granting root to itself: error %v, want ErrPermissionDenied", err)
	}

	recreated, err := meshetcd.NewAccount(source, "team", "2") // of a recreated namespace of the same name
	must(t, err)
	must(t, root.Ensure(t.Context(), recreated))
	if _, err := user.Authenticate(t.Context(), account.Name, account.Password); !errors.Is(err, rpctypes.ErrAuthFailed) {
		t.Errorf("authenticating with the password of the deleted namespace: error %v, want ErrAuthFailed", err)
	}
	login(t, server, recreated.Name, recreated.Password)
}

// enableAuth creates the user root and enables authentication, as the bundled etcd does when it starts.
func enableAuth(t *testing.T, server *etcd) {
	t.Helper()
	client := login(t, server, "", "")
	_, err := client.UserAdd(t.Context(), "root", "secret")
	must(t, err)
	_, err = client.RoleAdd(t.Context(), "root")
	must(t, err)
	_, err = client.UserGrantRole(t.Context(), "root", "root")
	must(t, err)
	_, err = client.AuthEnable(t.Context())
	must(t, err)
}

// login returns a client that is authenticated as a user, or not authenticated if the name is empty. It is closed when the test ends.
func login(t *testing.T, server *etcd, name, password string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{server.url()}, Username: name, Password: password, DialTimeout: waitTimeout, Logger: zap.NewNop(),
	})
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
