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
func (r *runtimeReconciler) reconcileService(ctx context.Context, state *namespaceState) error {
	if going, err := r.recreateService(ctx, state); err != nil || going {
		return err // it comes back with the event of its end
	}
	inputs := state.namespaceInputs(state.tls)
	desired := apply.Desired{{Config: resources.BuildService(inputs), AdoptIf: adoptIfLegacy}}
	renamed := func(o metav1.Object) bool { return hasServiceLabel(o) && o.GetName() != state.Settings.ServiceName }
	return errors.Join(r.applier.Apply(ctx, state.owner, desired), r.deleteManaged(ctx, state.Namespace, serviceKind, renamed),
		r.connectClients(state), r.reconcileServiceMonitor(ctx, state, inputs))
}

// remakeService deletes the Service when its kind of address has to change, which no update can do. It tells whether the Service
// is on its way out. The Service is read once, and again when the setting changes.
func (r *runtimeReconciler) recreateService(ctx context.Context, state *namespaceState) (going bool, err error) {
	if headless, seen := r.headlessServices.Get(state.Namespace); seen && headless == state.Settings.HeadlessService {
		return false, nil
	}
	live := &corev1.Service{}
	err = r.live.Get(ctx, namespacedName(state.Namespace, state.Settings.ServiceName), live)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading the Service: %w", err)
	}
	ours := err == nil && (isLegacy(live) || r.applier.IsManaged(live))
	if ours && (live.Spec.ClusterIP == corev1.ClusterIPNone) != state.Settings.HeadlessService {
		return true, r.applier.DeleteOwned(ctx, state.owner.GetUID(), live)
	}
	r.headlessServices.Set(state.Namespace, state.Settings.HeadlessService)
	return false, nil
}

// connect lets the manager talk with the namespace and hear of it.
func (r *runtimeReconciler) connectClients(state *namespaceState) error {
	target := meshclient.Target{
		Service: state.Settings.ServiceName, Port: state.Settings.ServicePort, Endpoint: state.Settings.ModelMeshEndpoint, TLS: state.clientKeyPair,
	}
	if state.Settings.RESTProxy.Enabled {
		target.RESTPort = state.Settings.RESTProxy.Port
	}
	r.stream.Ensure(state.Namespace, state.Settings.ServiceName)
	problem := strings.Join(state.tlsWarnings, "; ")
	var err error
	if state.Settings.TLS.Enabled() && state.clientKeyPair == nil {
		state.tlsWarnings = append(state.tlsWarnings, fmt.Sprintf("TLS secret '%s' can be used neither from namespace %s nor from %s: models cannot be managed; create it there",
			state.Settings.TLS.SecretName, state.Namespace, state.OperatorNamespace))
		problem = strings.Join(state.tlsWarnings, "; ")
	} else if err = r.pool.Ensure(state.Namespace, target); err != nil {
		err = fmt.Errorf("connecting to the runtimes of namespace %s: %w", state.Namespace, err)
	}
	r.reportToAllRuntimes(state, actionConnect, problem)
	return err
}

// monitor brings about the ServiceMonitor, which goes with the Service.
func (r *runtimeReconciler) reconcileServiceMonitor(ctx context.Context, state *namespaceState, inputs resources.NamespaceInputs) error {
	if !r.Served().Has(capability.ServiceMonitor) {
		return nil
	}
	if !resources.ServiceMonitorEnabled(state.Settings) {
		return r.deleteManaged(ctx, state.Namespace, capability.ServiceMonitor, func(o metav1.Object) bool { return o.GetName() == resources.MonitorName })
	}
	service, err := capability.GetMetadata(ctx, r.Cached, serviceKind, namespacedName(state.Namespace, state.Settings.ServiceName))
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
func (r *runtimeReconciler) reconcileSharedConfig(ctx context.Context, state *namespaceState) error {
	if len(state.runtimes) == 0 {
		return errors.Join(r.deleteManaged(ctx, state.Namespace, configMapKind, isConstraints), r.deleteManaged(ctx, state.Namespace, secretKind, isLegacy))
	}
	constraints, err := resources.BuildConstraints(state.Namespace, specsByName(state.runtimes), state.Settings.RESTProxy.Enabled)
	if err == nil {
		desired := apply.Desired{{Config: constraints, Ownership: apply.Unowned, AdoptIf: adoptIfLegacy}}
		err = r.applier.Apply(ctx, state.owner, desired)
	}
	return errors.Join(err, r.reconcileEtcdSecret(ctx, state))
}

// etcdSecret writes what the pods of a namespace read about etcd. The manager's own namespace has the Secret itself, and a
// namespace may have one that another client made, which then is in force there.
func (r *runtimeReconciler) reconcileEtcdSecret(ctx context.Context, state *namespaceState) error {
	name, own := state.Settings.EtcdSecretName, state.OperatorNamespace
	theirs, err := r.foreignEtcdData(ctx, state.Namespace, name)
	if err != nil {
		return err
	}
	if theirs != nil && !state.Settings.AllowNamespaceEtcd {
		r.reportToAllRuntimes(state, actionReadOwnEtcdSecret, fmt.Sprintf("Secret %s in namespace %s is not the manager's: delete it, or have the administrator set allowNamespaceEtcd", name, state.Namespace))
		return r.stream.ConnectOwn(state.Namespace, nil)
	}
	r.reportToAllRuntimes(state, actionReadOwnEtcdSecret, secretError(name, state.Namespace, r.stream.ConnectOwn(state.Namespace, theirs)))
	problem := ""
	switch {
	case state.etcd != nil:
		problem = secretError(name, own, r.stream.Connect(state.etcd))
	case theirs == nil:
		problem = fmt.Sprintf("Could not get the controller etcd secret: there is no Secret %s in namespace %s; create it", name, own)
	}
	r.reportToAllRuntimes(state, actionReadEtcdSecret, problem)
	if state.etcd == nil || theirs != nil || state.Namespace == own {
		return nil
	}
	var data map[string][]byte
	account, err := newEtcdAccount(state)
	if err == nil {
		data, err = meshetcd.Copy(state.etcd, own, state.Namespace, account)
	}
	if err != nil {
		r.reportToAllRuntimes(state, actionReadEtcdSecret, secretError(name, own, err))
		return nil
	}
	if err := r.grantAccount(ctx, state.Namespace, account); err != nil {
		return err
	}
	desired := apply.Desired{{Config: resources.BuildEtcdSecret(name, state.Namespace, data), Ownership: apply.Unowned, AdoptIf: adoptIfLegacy}}
	return errors.Join(r.applier.Apply(ctx, state.owner, desired), r.deleteManaged(ctx, state.Namespace, secretKind, func(o metav1.Object) bool {
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
func newEtcdAccount(state *namespaceState) (*meshetcd.Account, error) {
	if !state.Settings.EtcdUserPerNamespace {
		return nil, nil
	}
	account, err := meshetcd.NewAccount(state.etcd, state.Namespace, string(state.owner.GetUID()))
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
