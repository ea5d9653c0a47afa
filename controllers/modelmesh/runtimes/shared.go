package runtimes

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

// common brings about what all runtimes of a namespace read: the types of models that they know, and where etcd is. Where there
// are no runtimes it goes.
func (s *server) common(ctx context.Context, f *facts) error {
	if len(f.runtimes) == 0 {
		return errors.Join(s.removeAll(ctx, f.namespace, configMapKind, isConstraints), s.removeAll(ctx, f.namespace, secretKind, isEtcdCopy))
	}
	constraints, err := resources.BuildConstraints(f.namespace, specs(f.runtimes), f.settings.RESTProxy.Enabled)
	if err == nil {
		desired := apply.Desired{{Config: constraints, Ownership: apply.Unowned, Adopts: adoptsOriginals}}
		err = s.applier.Apply(ctx, f.owner, desired)
	}
	return errors.Join(err, s.etcdSecret(ctx, f))
}

// etcdSecret writes what the pods of a namespace read about etcd. The manager's own namespace has the Secret itself, and a
// namespace may have one that another client made, which then is in force there.
func (s *server) etcdSecret(ctx context.Context, f *facts) error {
	name, own := f.settings.EtcdSecretName, s.Namespaces.Own()
	theirs, err := s.ownEtcd(ctx, f.namespace, name)
	if err != nil {
		return err
	}
	if theirs != nil && !f.settings.AllowNamespaceEtcd {
		s.refuseAll(f, aboutOwnEtcd, fmt.Sprintf("Secret %s in namespace %s is not the manager's: delete it, or have the administrator set allowNamespaceEtcd", name, f.namespace))
		return s.stream.ConnectOwn(f.namespace, nil)
	}
	s.refuseAll(f, aboutOwnEtcd, unusable(name, f.namespace, s.stream.ConnectOwn(f.namespace, theirs)))
	problem := ""
	switch {
	case f.etcd != nil:
		problem = unusable(name, own, s.stream.Connect(f.etcd))
	case theirs == nil:
		problem = fmt.Sprintf("Could not get the controller etcd secret: there is no Secret %s in namespace %s; create it", name, own)
	}
	s.refuseAll(f, aboutEtcd, problem)
	if f.etcd == nil || theirs != nil || f.namespace == own {
		return nil
	}
	account, err := etcdAccount(f)
	if err != nil {
		s.refuseAll(f, aboutEtcd, unusable(name, own, err))
		return nil
	}
	if err := s.grant(ctx, f.namespace, account); err != nil {
		return err
	}
	data, err := meshetcd.Copy(f.etcd, own, f.namespace, account)
	if err != nil {
		s.refuseAll(f, aboutEtcd, unusable(name, own, err))
		return nil
	}
	desired := apply.Desired{{Config: resources.BuildEtcdSecret(name, f.namespace, data), Ownership: apply.Unowned, Adopts: adoptsOriginals}}
	return errors.Join(s.applier.Apply(ctx, f.owner, desired), s.removeAll(ctx, f.namespace, secretKind, func(o metav1.Object) bool {
		return isEtcdCopy(o) && o.GetName() != name
	}))
}

// An etcd without a volume loses its accounts with its pod, without an event.
const (
	grantEvery   = time.Minute
	grantTimeout = 5 * time.Second
)

// grant is an account that was seen to be as it should be.
type grant struct {
	account meshetcd.Account
	at      time.Time
}

// etcdAccount is that of the pods of a namespace; nil where they have the one of the manager.
func etcdAccount(f *facts) (*meshetcd.Account, error) {
	if !f.settings.EtcdUserPerNamespace {
		return nil, nil
	}
	account, err := meshetcd.AccountOf(f.etcd, f.namespace, string(f.owner.GetUID()))
	return &account, err
}

// grant makes an account, unless it was there a moment ago. An etcd that is away later holds nothing up.
func (s *server) grant(ctx context.Context, namespace string, account *meshetcd.Account) error {
	if account == nil {
		return nil
	}
	known, found := s.granted.Get(namespace)
	found = found && known.account == *account
	if found && s.clock.Since(known.at) < grantEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, grantTimeout)
	defer cancel()
	if err := s.stream.Grant(ctx, *account); err != nil && found {
		return nil //nolint:nilerr // the next reconcile tries again, and the watches report that etcd is away
	} else if err != nil {
		return fmt.Errorf("creating the user of namespace %s: %w", namespace, err)
	}
	s.granted.Set(namespace, grant{*account, s.clock.Now()})
	return nil
}

// unusable says what is wrong with an etcd Secret, "" without an error.
func unusable(name, namespace string, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("Secret %s in namespace %s cannot be used: %v", name, namespace, err)
}

// ownEtcd is the content of the etcd Secret of a namespace that neither we nor the original wrote, nil where there is none. The
// Secret in the manager's own namespace serves all namespaces.
func (s *server) ownEtcd(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	if namespace == s.Namespaces.Own() {
		return nil, nil
	}
	head := modelmesh.Metadata(secretKind)
	if err := s.Cached.Get(ctx, inside(namespace, name), head); err == nil && isOurs(head) {
		return nil, nil
	}
	data, _, err := s.copies.get(ctx, inside(namespace, name))
	return data, err
}
