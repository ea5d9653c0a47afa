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
func (r *runtimeReconciler) reconcileService(ctx context.Context, f *namespaceState) error {
	if going, err := r.recreateService(ctx, f); err != nil || going {
		return err // it comes back with the event of its end
	}
	inputs := f.namespaceInputs(f.tls)
	desired := apply.Desired{{Config: resources.BuildService(inputs), AdoptIf: adoptIfLegacy}}
	renamed := func(o metav1.Object) bool { return hasServiceLabel(o) && o.GetName() != f.Settings.ServiceName }
	return errors.Join(r.applier.Apply(ctx, f.owner, desired), r.deleteManaged(ctx, f.Namespace, serviceKind, renamed),
		r.connectClients(f), r.reconcileServiceMonitor(ctx, f, inputs))
}

// remakeService deletes the Service when its kind of address has to change, which no update can do. It tells whether the Service
// is on its way out. The Service is read once, and again when the setting changes.
func (r *runtimeReconciler) recreateService(ctx context.Context, f *namespaceState) (going bool, err error) {
	if headless, seen := r.headlessServices.Get(f.Namespace); seen && headless == f.Settings.HeadlessService {
		return false, nil
	}
	live := &corev1.Service{}
	err = r.live.Get(ctx, namespacedName(f.Namespace, f.Settings.ServiceName), live)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading the Service: %w", err)
	}
	ours := err == nil && (isLegacy(live) || r.applier.IsManaged(live))
	if ours && (live.Spec.ClusterIP == corev1.ClusterIPNone) != f.Settings.HeadlessService {
		return true, r.applier.DeleteOwned(ctx, f.owner.GetUID(), live)
	}
	r.headlessServices.Set(f.Namespace, f.Settings.HeadlessService)
	return false, nil
}

// connect lets the manager talk with the namespace and hear of it.
func (r *runtimeReconciler) connectClients(f *namespaceState) error {
	target := meshclient.Target{
		Service: f.Settings.ServiceName, Port: f.Settings.ServicePort, Endpoint: f.Settings.ModelMeshEndpoint, TLS: f.clientKeyPair,
	}
	if f.Settings.RESTProxy.Enabled {
		target.RESTPort = f.Settings.RESTProxy.Port
	}
	r.stream.Ensure(f.Namespace, f.Settings.ServiceName)
	problem := strings.Join(f.tlsWarnings, "; ")
	var err error
	if f.Settings.TLS.Enabled() && f.clientKeyPair == nil {
		f.tlsWarnings = append(f.tlsWarnings, fmt.Sprintf("TLS secret '%s' can be used neither from namespace %s nor from %s: models cannot be managed; create it there",
			f.Settings.TLS.SecretName, f.Namespace, f.OperatorNamespace))
		problem = strings.Join(f.tlsWarnings, "; ")
	} else if err = r.pool.Ensure(f.Namespace, target); err != nil {
		err = fmt.Errorf("connecting to the runtimes of namespace %s: %w", f.Namespace, err)
	}
	r.reportToAllRuntimes(f, actionConnect, problem)
	return err
}

// monitor brings about the ServiceMonitor, which goes with the Service.
func (r *runtimeReconciler) reconcileServiceMonitor(ctx context.Context, f *namespaceState, inputs resources.NamespaceInputs) error {
	if !r.Served().Has(capability.ServiceMonitor) {
		return nil
	}
	if !resources.ServiceMonitorEnabled(f.Settings) {
		return r.deleteManaged(ctx, f.Namespace, capability.ServiceMonitor, func(o metav1.Object) bool { return o.GetName() == resources.MonitorName })
	}
	service, err := capability.GetMetadata(ctx, r.Cached, serviceKind, namespacedName(f.Namespace, f.Settings.ServiceName))
	if err != nil || service == nil {
		return err // its event brings us back
	}
	return r.applier.Apply(ctx, service, apply.Desired{{Config: resources.BuildServiceMonitor(inputs), AdoptIf: adoptIfLegacy}})
}

// removeAll deletes what is ours of a kind in a namespace, as far as it is unwanted.
func (r *runtimeReconciler) deleteManaged(ctx context.Context, namespace string, kind schema.GroupVersionKind, unwanted func(metav1.Object) bool) error {
	heads, err := modelmesh.ListMetadata(ctx, r.Cached, kind, client.InNamespace(namespace), managedLabels())
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
		errs = append(errs, r.applier.DeleteOwned(ctx, controllerUID(o), o))
	}
	return errors.Join(errs...)
}

// common brings about what all runtimes of a namespace read: the types of models that they know, and where etcd is. Where there
// are no runtimes it goes.
func (r *runtimeReconciler) reconcileSharedConfig(ctx context.Context, f *namespaceState) error {
	if len(f.runtimes) == 0 {
		return errors.Join(r.deleteManaged(ctx, f.Namespace, configMapKind, isConstraints), r.deleteManaged(ctx, f.Namespace, secretKind, isLegacy))
	}
	constraints, err := resources.BuildConstraints(f.Namespace, specsByName(f.runtimes), f.Settings.RESTProxy.Enabled)
	if err == nil {
		desired := apply.Desired{{Config: constraints, Ownership: apply.Unowned, AdoptIf: adoptIfLegacy}}
		err = r.applier.Apply(ctx, f.owner, desired)
	}
	return errors.Join(err, r.reconcileEtcdSecret(ctx, f))
}

// etcdSecret writes what the pods of a namespace read about etcd. The manager's own namespace has the Secret itself, and a
// namespace may have one that another client made, which then is in force there.
func (r *runtimeReconciler) reconcileEtcdSecret(ctx context.Context, f *namespaceState) error {
	name, own := f.Settings.EtcdSecretName, f.OperatorNamespace
	theirs, err := r.foreignEtcdData(ctx, f.Namespace, name)
	if err != nil {
		return err
	}
	if theirs != nil && !f.Settings.AllowNamespaceEtcd {
		r.reportToAllRuntimes(f, actionReadOwnEtcdSecret, fmt.Sprintf("Secret %s in namespace %s is not the manager's: delete it, or have the administrator set allowNamespaceEtcd", name, f.Namespace))
		return r.stream.ConnectOwn(f.Namespace, nil)
	}
	r.reportToAllRuntimes(f, actionReadOwnEtcdSecret, secretError(name, f.Namespace, r.stream.ConnectOwn(f.Namespace, theirs)))
	problem := ""
	switch {
	case f.etcd != nil:
		problem = secretError(name, own, r.stream.Connect(f.etcd))
	case theirs == nil:
		problem = fmt.Sprintf("Could not get the controller etcd secret: there is no Secret %s in namespace %s; create it", name, own)
	}
	r.reportToAllRuntimes(f, actionReadEtcdSecret, problem)
	if f.etcd == nil || theirs != nil || f.Namespace == own {
		return nil
	}
	var data map[string][]byte
	account, err := newEtcdAccount(f)
	if err == nil {
		data, err = meshetcd.Copy(f.etcd, own, f.Namespace, account)
	}
	if err != nil {
		r.reportToAllRuntimes(f, actionReadEtcdSecret, secretError(name, own, err))
		return nil
	}
	if err := r.grantAccount(ctx, f.Namespace, account); err != nil {
		return err
	}
	desired := apply.Desired{{Config: resources.BuildEtcdSecret(name, f.Namespace, data), Ownership: apply.Unowned, AdoptIf: adoptIfLegacy}}
	return errors.Join(r.applier.Apply(ctx, f.owner, desired), r.deleteManaged(ctx, f.Namespace, secretKind, func(o metav1.Object) bool {
		return isLegacy(o) && o.GetName() != name
	}))
}

// An etcd without a volume loses its accounts with its pod, without an event.
const (
	grantInterval = time.Minute
	grantTimeout  = 5 * time.Second
)

// grant is an account that was seen to be as it should be.
type grantedAccount struct {
	account   meshetcd.Account
	grantedAt time.Time
}

// etcdAccount is that of the pods of a namespace; nil where they have the one of the manager.
func newEtcdAccount(f *namespaceState) (*meshetcd.Account, error) {
	if !f.Settings.EtcdUserPerNamespace {
		return nil, nil
	}
	account, err := meshetcd.NewAccount(f.etcd, f.Namespace, string(f.owner.GetUID()))
	return &account, err
}

// grant makes an account, unless it was there a moment ago. An etcd that is away later holds nothing up.
func (r *runtimeReconciler) grantAccount(ctx context.Context, namespace string, account *meshetcd.Account) error {
	if account == nil {
		return nil
	}
	known, found := r.grantedAccounts.Get(namespace)
	found = found && known.account == *account
	if found && r.clock.Since(known.grantedAt) < grantInterval {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, grantTimeout)
	defer cancel()
	if err := r.stream.Grant(ctx, *account); err != nil && found {
		return nil //nolint:nilerr // the next reconcile tries again, and the watches report that etcd is away
	} else if err != nil {
		return fmt.Errorf("creating the user of namespace %s: %w", namespace, err)
	}
	r.grantedAccounts.Set(namespace, grantedAccount{*account, r.clock.Now()})
	return nil
}

// unusable says what is wrong with an etcd Secret, "" without an error.
func secretError(name, namespace string, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("Secret %s in namespace %s cannot be used: %v", name, namespace, err)
}

// ownEtcd is the content of the etcd Secret of a namespace that neither we nor the original wrote, nil where there is none. The
// Secret in the manager's own namespace serves all namespaces.
func (r *runtimeReconciler) foreignEtcdData(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	if namespace == r.Namespaces.OperatorNamespace {
		return nil, nil
	}
	if head, err := capability.GetMetadata(ctx, r.Cached, secretKind, namespacedName(namespace, name)); err == nil && head != nil && isManaged(head) {
		return nil, nil
	}
	data, _, err := r.namespaceEtcd.Get(ctx, namespacedName(namespace, name))
	return data, err
}
