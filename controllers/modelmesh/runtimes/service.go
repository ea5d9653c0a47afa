package runtimes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
)

// front brings about the Service of a namespace, what watches it, and the manager's own connections to what stands behind it.
func (s *server) front(ctx context.Context, f *facts) error {
	if going, err := s.remakeService(ctx, f); err != nil || going {
		return err // it comes back with the event of its end
	}
	inputs := f.inputs(f.tls)
	desired := apply.Desired{{Config: resources.BuildService(inputs), AdoptIf: adoptsOriginals}}
	renamed := func(o metav1.Object) bool { return ofMesh(o) && o.GetName() != f.Settings.ServiceName }
	return errors.Join(s.applier.Apply(ctx, f.owner, desired), s.removeAll(ctx, f.Namespace, serviceKind, renamed),
		s.connect(f), s.monitor(ctx, f, inputs))
}

// remakeService deletes the Service when its kind of address has to change, which no update can do. It tells whether the Service
// is on its way out. The Service is read once, and again when the setting changes.
func (s *server) remakeService(ctx context.Context, f *facts) (going bool, err error) {
	if headless, seen := s.headless.Get(f.Namespace); seen && headless == f.Settings.HeadlessService {
		return false, nil
	}
	live := &corev1.Service{}
	err = s.live.Get(ctx, inside(f.Namespace, f.Settings.ServiceName), live)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading the Service: %w", err)
	}
	ours := err == nil && (originals(live) || s.applier.IsManaged(live))
	if ours && (live.Spec.ClusterIP == corev1.ClusterIPNone) != f.Settings.HeadlessService {
		return true, s.applier.DeleteOwned(ctx, f.owner.GetUID(), live)
	}
	s.headless.Set(f.Namespace, f.Settings.HeadlessService)
	return false, nil
}

// connect lets the manager talk with the namespace and hear of it.
func (s *server) connect(f *facts) error {
	target := meshclient.Target{
		Service: f.Settings.ServiceName, Port: f.Settings.ServicePort, Endpoint: f.Settings.ModelMeshEndpoint, TLS: f.pair,
	}
	if f.Settings.RESTProxy.Enabled {
		target.RESTPort = f.Settings.RESTProxy.Port
	}
	s.stream.Ensure(f.Namespace, f.Settings.ServiceName)
	problem := strings.Join(f.tlsNotes, "; ")
	var err error
	if f.Settings.TLS.Enabled() && f.pair == nil {
		f.tlsNotes = append(f.tlsNotes, fmt.Sprintf("TLS secret '%s' can be used neither from namespace %s nor from %s: models cannot be managed; create it there",
			f.Settings.TLS.SecretName, f.Namespace, f.Home))
		problem = strings.Join(f.tlsNotes, "; ")
	} else if err = s.pool.Ensure(f.Namespace, target); err != nil {
		err = fmt.Errorf("connecting to the runtimes of namespace %s: %w", f.Namespace, err)
	}
	s.refuseAll(f, aboutClient, problem)
	return err
}

// monitor brings about the ServiceMonitor, which goes with the Service.
func (s *server) monitor(ctx context.Context, f *facts, inputs resources.NamespaceInputs) error {
	if !s.Served().Has(capability.ServiceMonitor) {
		return nil
	}
	if !resources.Monitored(f.Settings) {
		return s.removeAll(ctx, f.Namespace, capability.ServiceMonitor, func(o metav1.Object) bool { return o.GetName() == resources.MonitorName })
	}
	service, err := capability.GetMetadata(ctx, s.Cached, serviceKind, inside(f.Namespace, f.Settings.ServiceName))
	if err != nil || service == nil {
		return err // its event brings us back
	}
	return s.applier.Apply(ctx, service, apply.Desired{{Config: resources.BuildServiceMonitor(inputs), AdoptIf: adoptsOriginals}})
}

// removeAll deletes what is ours of a kind in a namespace, as far as it is unwanted.
func (s *server) removeAll(ctx context.Context, namespace string, kind schema.GroupVersionKind, unwanted func(metav1.Object) bool) error {
	heads, err := modelmesh.ListMetadata(ctx, s.Cached, kind, client.InNamespace(namespace), ours())
	if err != nil {
		return err
	}
	var errs []error
	for i := range heads {
		if !unwanted(&heads[i]) {
			continue
		}
		o := heads[i].DeepCopy()
		o.SetGroupVersionKind(kind)
		errs = append(errs, s.applier.DeleteOwned(ctx, ownerOf(o), o))
	}
	return errors.Join(errs...)
}

// common brings about what all runtimes of a namespace read: the types of models that they know, and where etcd is. Where there
// are no runtimes it goes.
func (s *server) common(ctx context.Context, f *facts) error {
	if len(f.runtimes) == 0 {
		return errors.Join(s.removeAll(ctx, f.Namespace, configMapKind, isConstraints), s.removeAll(ctx, f.Namespace, secretKind, originals))
	}
	constraints, err := resources.BuildConstraints(f.Namespace, specs(f.runtimes), f.Settings.RESTProxy.Enabled)
	if err == nil {
		desired := apply.Desired{{Config: constraints, Ownership: apply.Unowned, AdoptIf: adoptsOriginals}}
		err = s.applier.Apply(ctx, f.owner, desired)
	}
	return errors.Join(err, s.etcdSecret(ctx, f))
}

// etcdSecret writes what the pods of a namespace read about etcd. The manager's own namespace has the Secret itself, and a
// namespace may have one that another client made, which then is in force there.
func (s *server) etcdSecret(ctx context.Context, f *facts) error {
	name, own := f.Settings.EtcdSecretName, f.Home
	theirs, err := s.ownEtcd(ctx, f.Namespace, name)
	if err != nil {
		return err
	}
	if theirs != nil && !f.Settings.AllowNamespaceEtcd {
		s.refuseAll(f, aboutOwnEtcd, fmt.Sprintf("Secret %s in namespace %s is not the manager's: delete it, or have the administrator set allowNamespaceEtcd", name, f.Namespace))
		return s.stream.ConnectOwn(f.Namespace, nil)
	}
	s.refuseAll(f, aboutOwnEtcd, unusable(name, f.Namespace, s.stream.ConnectOwn(f.Namespace, theirs)))
	problem := ""
	switch {
	case f.etcd != nil:
		problem = unusable(name, own, s.stream.Connect(f.etcd))
	case theirs == nil:
		problem = fmt.Sprintf("Could not get the controller etcd secret: there is no Secret %s in namespace %s; create it", name, own)
	}
	s.refuseAll(f, aboutEtcd, problem)
	if f.etcd == nil || theirs != nil || f.Namespace == own {
		return nil
	}
	var data map[string][]byte
	account, err := etcdAccount(f)
	if err == nil {
		data, err = meshetcd.Copy(f.etcd, own, f.Namespace, account)
	}
	if err != nil {
		s.refuseAll(f, aboutEtcd, unusable(name, own, err))
		return nil
	}
	if err := s.grant(ctx, f.Namespace, account); err != nil {
		return err
	}
	desired := apply.Desired{{Config: resources.BuildEtcdSecret(name, f.Namespace, data), Ownership: apply.Unowned, AdoptIf: adoptsOriginals}}
	return errors.Join(s.applier.Apply(ctx, f.owner, desired), s.removeAll(ctx, f.Namespace, secretKind, func(o metav1.Object) bool {
		return originals(o) && o.GetName() != name
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
	if !f.Settings.EtcdUserPerNamespace {
		return nil, nil
	}
	account, err := meshetcd.AccountOf(f.etcd, f.Namespace, string(f.owner.GetUID()))
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
	if namespace == s.Namespaces.OperatorNamespace {
		return nil, nil
	}
	if head, err := capability.GetMetadata(ctx, s.Cached, secretKind, inside(namespace, name)); err == nil && head != nil && isOurs(head) {
		return nil, nil
	}
	data, _, err := s.copies.Get(ctx, inside(namespace, name))
	return data, err
}
