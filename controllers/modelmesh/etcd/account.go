package etcd

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Account is an etcd user with a role of the same name that grants access to the keys below Prefix only.
type Account struct {
	Name, Password, Prefix string
}

// NewAccount returns the account of a namespace with the given UID. The password is an HMAC of the namespace and its UID,
// keyed with the password of the connection. It need not be stored, and a recreated namespace gets a new one.
func NewAccount(source map[string][]byte, namespace, uid string) (Account, error) {
	connection, err := Parse(source)
	switch {
	case err != nil:
		return Account{}, err
	case connection.UserID == "" || connection.Password == "":
		return Account{}, errors.New("userid or password is empty: set those of the user root, with which etcdUserPerNamespace creates users")
	case connection.ClientCertificate != "" || connection.ClientCertificateFile != "":
		return Account{}, errors.New("the client certificate, which may authenticate a user, would be copied to every namespace: remove it, or set etcdUserPerNamespace to false")
	}
	mac := hmac.New(sha256.New, []byte(connection.Password))
	mac.Write([]byte(namespace + "/" + uid))
	return Account{Name: "modelmesh-" + namespace, Password: hex.EncodeToString(mac.Sum(nil)), Prefix: connection.namespacePrefix(namespace)}, nil
}

// namespacePrefix returns the key prefix of a namespace other than the operator's.
func (c Connection) namespacePrefix(namespace string) string {
	return c.RootPrefix + "/mm_ns/" + namespace
}

// Ensure creates or corrects the role and the user of an account. It writes only differences, because each change invalidates the tokens
// of the user.
func (c *Client) Ensure(ctx context.Context, a Account) error {
	etcd, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if err := ensureRole(ctx, etcd, a); err != nil {
		return fmt.Errorf("role %s of etcd: %w", a.Name, err)
	}
	if err := ensureUser(ctx, etcd, a); err != nil {
		return fmt.Errorf("user %s of etcd: %w", a.Name, err)
	}
	return nil
}

// ensureRole grants access to the keys below the prefix. The trailing slash excludes namespaces whose names have this name as a prefix.
func ensureRole(ctx context.Context, etcd *clientv3.Client, a Account) error {
	keyPrefix := a.Prefix + "/"
	rangeEnd := clientv3.GetPrefixRangeEnd(keyPrefix)
	role, err := etcd.RoleGet(ctx, a.Name)
	if errors.Is(err, rpctypes.ErrRoleNotFound) {
		role = &clientv3.AuthRoleGetResponse{}
		_, err = etcd.RoleAdd(ctx, a.Name)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(role.Perm, func(p *authpb.Permission) bool {
		return p.PermType == authpb.READWRITE && string(p.Key) == keyPrefix && string(p.RangeEnd) == rangeEnd
	}) {
		return nil
	}
	_, err = etcd.RoleGrantPermission(ctx, a.Name, keyPrefix, rangeEnd, clientv3.PermissionType(clientv3.PermReadWrite))
	return err
}

func ensureUser(ctx context.Context, etcd *clientv3.Client, a Account) error {
	user, err := etcd.UserGet(ctx, a.Name)
	if errors.Is(err, rpctypes.ErrUserNotFound) {
		user = &clientv3.AuthUserGetResponse{}
		_, err = etcd.UserAdd(ctx, a.Name, a.Password)
	} else if err == nil {
		if _, err = etcd.Authenticate(ctx, a.Name, a.Password); errors.Is(err, rpctypes.ErrAuthFailed) {
			_, err = etcd.UserChangePassword(ctx, a.Name, a.Password)
		}
	}
	if err != nil || slices.Contains(user.Roles, a.Name) {
		return err
	}
	_, err = etcd.UserGrantRole(ctx, a.Name, a.Name)
	return err
}
