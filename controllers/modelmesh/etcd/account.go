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
	name := "modelmesh-" + namespace
	if name == connection.UserID {
		return Account{}, fmt.Errorf("userid %s is the name of the user for namespace %s, which would get another password: set userid to another user, such as root", name, namespace)
	}
	mac := hmac.New(sha256.New, []byte(connection.Password))
	mac.Write([]byte(namespace + "/" + uid))
	return Account{Name: name, Password: hex.EncodeToString(mac.Sum(nil)), Prefix: connection.namespacePrefix(namespace)}, nil
}

// namespacePrefix returns the key prefix of a namespace other than the operator's.
func (c Connection) namespacePrefix(namespace string) string {
	return c.RootPrefix + "/mm_ns/" + namespace
}

// Ensure creates or corrects the role and the user of an account. It writes only differences, because each change invalidates tokens.
func (c *Client) Ensure(ctx context.Context, account Account) error {
	etcd, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if err := ensureRole(ctx, etcd, account); err != nil {
		return fmt.Errorf("ensuring etcd role %s: %w", account.Name, err)
	}
	if err := ensureUser(ctx, etcd, account); err != nil {
		return fmt.Errorf("ensuring etcd user %s: %w", account.Name, err)
	}
	return nil
}

// ensureRole ensures that a role exists and can access the keys below the prefix. The slash excludes other namespaces whose names
// begin with the name of this one.
func ensureRole(ctx context.Context, etcd *clientv3.Client, account Account) error {
	keyPrefix := account.Prefix + "/"
	rangeEnd := clientv3.GetPrefixRangeEnd(keyPrefix)
	role, err := etcd.RoleGet(ctx, account.Name)
	if errors.Is(err, rpctypes.ErrRoleNotFound) {
		role = &clientv3.AuthRoleGetResponse{}
		_, err = etcd.RoleAdd(ctx, account.Name)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(role.Perm, func(p *authpb.Permission) bool {
		return p.PermType == authpb.READWRITE && string(p.Key) == keyPrefix && string(p.RangeEnd) == rangeEnd
	}) {
		return nil
	}
	_, err = etcd.RoleGrantPermission(ctx, account.Name, keyPrefix, rangeEnd, clientv3.PermissionType(clientv3.PermReadWrite))
	return err
}

func ensureUser(ctx context.Context, etcd *clientv3.Client, account Account) error {
	user, err := etcd.UserGet(ctx, account.Name)
	if errors.Is(err, rpctypes.ErrUserNotFound) {
		user = &clientv3.AuthUserGetResponse{}
		_, err = etcd.UserAdd(ctx, account.Name, account.Password)
	} else if err == nil {
		if _, err = etcd.Authenticate(ctx, account.Name, account.Password); errors.Is(err, rpctypes.ErrAuthFailed) {
			_, err = etcd.UserChangePassword(ctx, account.Name, account.Password)
		}
	}
	if err != nil || slices.Contains(user.Roles, account.Name) {
		return err
	}
	_, err = etcd.UserGrantRole(ctx, account.Name, account.Name)
	return err
}
