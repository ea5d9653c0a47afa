package etcd

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Copy is the data of the Secret by which the pods of a namespace reach etcd, made from that of the manager's own namespace: the
// state lies below a prefix of the namespace, hosts that only resolve in the manager's namespace get its name, and the files that the
// connection names come along. The account, if there is one, takes the place of the user of the connection.
func Copy(source map[string][]byte, managerNamespace, namespace string, account *Account) (map[string][]byte, error) {
	c, err := Parse(source)
	if err != nil {
		return nil, err
	}
	if _, err := c.Material(source); err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	for _, file := range c.Files() {
		data[file] = source[file]
	}
	c.RootPrefix = c.namespacePrefix(namespace)
	if account != nil {
		c.UserID, c.Password = account.Name, account.Password
	}
	c.Endpoints = qualifyHosts(c.Endpoints, managerNamespace)
	if data[ConnectionKey], err = json.Marshal(c); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", ConnectionKey, err)
	}
	return data, nil
}

// qualified gives hosts without a dot the name of the namespace in which they are Services. Addresses and names with dots mean the
// same everywhere, and localhost never meant a Service.
func qualifyHosts(endpoints, namespace string) string {
	all := strings.Split(endpoints, ",")
	for i, endpoint := range all {
		_, rest, found := strings.Cut(endpoint, "://")
		if !found {
			rest = endpoint
		}
		host := rest
		if end := strings.IndexAny(rest, ":/ "); end >= 0 {
			host = rest[:end]
		}
		_, err := netip.ParseAddr(rest)
		isAddress := err == nil || strings.HasPrefix(rest, "[") // one of version 6 may have no brackets
		if host == "" || isAddress || strings.Contains(host, ".") || host == "localhost" {
			continue
		}
		all[i] = strings.TrimSuffix(endpoint, rest) + host + "." + namespace + strings.TrimPrefix(rest, host)
	}
	return strings.Join(all, ",")
}

// Account is a user that may read and write the keys below Prefix and no others, by a role of the same name.
type Account struct {
	Name, Password, Prefix string
}

// AccountOf is that of a namespace with a UID. The password follows from that of the connection, so that nothing needs to be stored, and
// a namespace that gets the name of a deleted one has another. An error says why the connection cannot be divided.
func NewAccount(source map[string][]byte, namespace, uid string) (Account, error) {
	c, err := Parse(source)
	switch {
	case err != nil:
		return Account{}, err
	case c.UserID == "" || c.Password == "":
		return Account{}, errors.New("it names no user and password with which users could be created: etcdUserPerNamespace needs the user root")
	case c.ClientCertificate != "" || c.ClientCertificateFile != "":
		return Account{}, errors.New("every namespace would have its client certificate, which can stand for a user: etcdUserPerNamespace needs a connection without one")
	}
	mac := hmac.New(sha256.New, []byte(c.Password))
	mac.Write([]byte(namespace + "/" + uid))
	return Account{Name: "modelmesh-" + namespace, Password: hex.EncodeToString(mac.Sum(nil)), Prefix: c.namespacePrefix(namespace)}, nil
}

// prefixOf stands before all keys of a namespace other than the manager's.
func (c Connection) namespacePrefix(namespace string) string {
	return c.RootPrefix + "/mm_ns/" + namespace
}

// Ensure makes an account as it should be. What is right already is only read: each change ends the tokens of its user.
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

// ensureRole grants what is below the prefix. The keys of a namespace that begins with the name of this one are not below it.
func ensureRole(ctx context.Context, etcd *clientv3.Client, a Account) error {
	below := a.Prefix + "/"
	end := clientv3.GetPrefixRangeEnd(below)
	role, err := etcd.RoleGet(ctx, a.Name)
	if errors.Is(err, rpctypes.ErrRoleNotFound) {
		role = &clientv3.AuthRoleGetResponse{}
		_, err = etcd.RoleAdd(ctx, a.Name)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(role.Perm, func(p *authpb.Permission) bool {
		return p.PermType == authpb.READWRITE && string(p.Key) == below && string(p.RangeEnd) == end
	}) {
		return nil
	}
	_, err = etcd.RoleGrantPermission(ctx, a.Name, below, end, clientv3.PermissionType(clientv3.PermReadWrite))
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
