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
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// reconcileService applies the Service of a namespace and its ServiceMonitor, and updates the operator's connections to the Service.
func (r *runtimeReconciler) reconcileService(ctx context.Context, state *namespaceState) error {
	if terminating, err := r.deleteMismatchedService(ctx, state); err != nil || terminating {
		return err // the deletion of the Service triggers a reconcile
	}
	inputs := state.namespaceInputs(state.tls)
	hasPreviousName := func(o metav1.Object) bool { return hasServiceLabel(o) && o.GetName() != state.Settings.ServiceName }
	return errors.Join(r.apply(ctx, state.owner, apply.Desired{{Config: resources.BuildService(inputs)}}), r.deleteManaged(ctx, state.Namespace, serviceKind, hasPreviousName),
		r.connectClients(state), r.reconcileServiceMonitor(ctx, state, inputs))
}

// deleteMismatchedService deletes a managed or legacy Service if its immutable clusterIP does not match the setting headlessService. It
// reports whether the Service is terminating. After a match it reads the Service again only if the setting changes.
func (r *runtimeReconciler) deleteMismatchedService(ctx context.Context, state *namespaceState) (terminating bool, err error) {
	if state.headless != nil && *state.headless == state.Settings.HeadlessService {
		return false, nil
	}
	live := &corev1.Service{}
	err = r.live.Get(ctx, namespacedName(state.Namespace, state.Settings.ServiceName), live)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading the Service: %w", err)
	}
	managed := err == nil && (resources.HasManagedByLabel(live) || r.applier.IsManaged(live))
	if managed && (live.Spec.ClusterIP == corev1.ClusterIPNone) != state.Settings.HeadlessService {
		return true, r.applier.DeleteOwned(ctx, state.owner.GetUID(), live)
	}
	state.headless = new(state.Settings.HeadlessService)
	return false, nil
}

// connectClients configures the mesh client and the etcd watch of the namespace.
func (r *runtimeReconciler) connectClients(state *namespaceState) error {
	target := meshclient.Target{
		Service: state.Settings.ServiceName, Port: state.Settings.ServicePort, Endpoint: state.Settings.ModelMeshEndpoint, TLS: state.clientKeyPair,
	}
	if state.Settings.RESTProxy.Enabled {
		target.RESTPort = state.Settings.RESTProxy.Port
	}
	r.etcdWatcher.Ensure(state.Namespace, state.Settings.ServiceName)
	var err error
	if state.Settings.TLS.Enabled() && state.clientKeyPair == nil {
		state.tlsWarnings = append(state.tlsWarnings, fmt.Sprintf("TLS secret '%s' is missing or invalid in the namespaces %s and %s: models cannot be managed; create it in one of them",
			state.Settings.TLS.SecretName, state.Namespace, state.OperatorNamespace))
	} else if err = r.pool.Ensure(state.Namespace, target); err != nil {
		err = fmt.Errorf("connecting to the runtimes of namespace %s: %w", state.Namespace, err)
	}
	state.reportToAllRuntimes(actionConnect, strings.Join(state.tlsWarnings, "; "))
	return err
}

// reconcileServiceMonitor applies the ServiceMonitor, which is owned by the Service, or deletes it.
func (r *runtimeReconciler) reconcileServiceMonitor(ctx context.Context, state *namespaceState, inputs resources.NamespaceInputs) error {
	if !r.Served().Has(capability.ServiceMonitor) {
		return nil
	}
	if !resources.ServiceMonitorEnabled(state.Settings) {
		return r.deleteManaged(ctx, state.Namespace, capability.ServiceMonitor, func(o metav1.Object) bool { return o.GetName() == resources.MonitorName })
	}
	service, err := objectmeta.Get(ctx, r.Cached, serviceKind, namespacedName(state.Namespace, state.Settings.ServiceName))
	if err != nil || service == nil {
		return err // the creation of the Service triggers a reconcile
	}
	return r.apply(ctx, service, apply.Desired{{Config: resources.BuildServiceMonitor(inputs)}})
}

// deleteManaged deletes the managed objects of a kind in a namespace for which unwanted returns true.
func (r *runtimeReconciler) deleteManaged(ctx context.Context, namespace string, kind schema.GroupVersionKind, unwanted func(metav1.Object) bool) error {
	objects, err := modelmesh.ListMetadata(ctx, r.Cached, kind, client.InNamespace(namespace), managedLabels())
	if err != nil {
		return err
	}
	var errs []error
	for i := range objects {
		if !unwanted(&objects[i]) {
			continue
		}
		o := objects[i].DeepCopy()
		o.SetGroupVersionKind(kind)
		errs = append(errs, r.applier.DeleteOwned(ctx, controllerUID(o), o))
	}
	return errors.Join(errs...)
}

// reconcileSharedConfig applies the configuration that all runtimes of a namespace read: the type constraints and the etcd Secret. It
// deletes both if the namespace has no runtimes.
func (r *runtimeReconciler) reconcileSharedConfig(ctx context.Context, state *namespaceState) error {
	if len(state.runtimes) == 0 {
		return errors.Join(r.deleteManaged(ctx, state.Namespace, configMapKind, isConstraints), r.deleteManaged(ctx, state.Namespace, secretKind, resources.HasManagedByLabel))
	}
	constraints := resources.BuildConstraints(state.Namespace, specsByName(state.runtimes), state.Settings.RESTProxy.Enabled)
	return errors.Join(r.apply(ctx, state.owner, apply.Desired{{Config: constraints, Ownership: apply.Unowned}}), r.reconcileEtcdSecret(ctx, state))
}

// reconcileEtcdSecret applies the Secret with which the pods of a namespace connect to etcd. The operator's namespace has the source Secret
// itself. A Secret that another client created in a namespace is never changed. Unless it is allowed, no Deployment is applied, because
// the pods would use it.
func (r *runtimeReconciler) reconcileEtcdSecret(ctx context.Context, state *namespaceState) error {
	name, operatorNamespace := state.Settings.EtcdSecretName, state.OperatorNamespace
	foreignData, err := r.foreignEtcdData(ctx, state.Namespace, name)
	if err != nil {
		return err
	}
	if foreignData != nil && !state.Settings.AllowNamespaceEtcd {
		state.errForeignEtcdSecret = fmt.Errorf("the Secret %s in namespace %s was not created by the operator, so the Deployments of the "+
			"namespace do not change: delete the Secret, or ask an administrator to set allowNamespaceEtcd: true", name, state.Namespace)
		return r.etcdWatcher.ConnectOwn(state.Namespace, nil)
	}
	state.reportToAllRuntimes(actionReadOwnEtcdSecret, secretErrorMessage(name, state.Namespace, r.etcdWatcher.ConnectOwn(state.Namespace, foreignData)))
	problem := ""
	switch {
	case state.etcd != nil:
		problem = secretErrorMessage(name, operatorNamespace, r.etcdWatcher.Connect(state.etcd))
	case foreignData == nil:
		problem = fmt.Sprintf("Could not get the controller etcd secret: there is no Secret %s in namespace %s; create it", name, operatorNamespace)
	}
	state.reportToAllRuntimes(actionReadEtcdSecret, problem)
	if state.etcd == nil || foreignData != nil || state.Namespace == operatorNamespace {
		return nil
	}
	var data map[string][]byte
	account, err := newEtcdAccount(state)
	if err == nil {
		data, err = meshetcd.Copy(state.etcd, operatorNamespace, state.Namespace, account)
	}
	if err != nil {
		state.reportToAllRuntimes(actionReadEtcdSecret, secretErrorMessage(name, operatorNamespace, err))
		return nil
	}
	if err := r.grantAccount(ctx, state, account); err != nil {
		return err
	}
	desired := apply.Desired{{Config: resources.BuildEtcdSecret(name, state.Namespace, data), Ownership: apply.Unowned}}
	return errors.Join(r.apply(ctx, state.owner, desired), r.deleteManaged(ctx, state.Namespace, secretKind, func(o metav1.Object) bool {
		return resources.HasManagedByLabel(o) && o.GetName() != name
	}))
}

const (
	// grantInterval is the interval at which an account is verified: an etcd without a volume loses its accounts when its pod restarts.
	grantInterval = time.Minute
	grantTimeout  = 5 * time.Second
)

// grantedAccount is an etcd account and the time of its last verification.
type grantedAccount struct {
	account   meshetcd.Account
	grantedAt time.Time
}

// newEtcdAccount returns the etcd account of a namespace's pods, or nil if they use the operator's account.
func newEtcdAccount(state *namespaceState) (*meshetcd.Account, error) {
	if !state.Settings.EtcdUserPerNamespace {
		return nil, nil
	}
	account, err := meshetcd.NewAccount(state.etcd, state.Namespace, string(state.owner.GetUID()))
	return &account, err
}

// grantAccount creates an etcd account unless it was verified within grantInterval. A failure to verify an account again is not an error.
func (r *runtimeReconciler) grantAccount(ctx context.Context, state *namespaceState, account *meshetcd.Account) error {
	if account == nil {
		return nil
	}
	isVerified := state.granted.account == *account
	if isVerified && r.clock.Since(state.granted.grantedAt) < grantInterval {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, grantTimeout)
	defer cancel()
	if err := r.etcdWatcher.Grant(ctx, *account); err != nil && isVerified {
		return nil //nolint:nilerr // the next reconcile retries, and the watches report that etcd is unavailable
	} else if err != nil {
		return fmt.Errorf("creating the etcd user of namespace %s: %w", state.Namespace, err)
	}
	state.granted = grantedAccount{*account, r.clock.Now()}
	return nil
}

// secretErrorMessage returns the message about an invalid etcd Secret, or "".
func secretErrorMessage(name, namespace string, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("Secret %s in namespace %s cannot be used: %v", name, namespace, err)
}

// foreignEtcdData returns the data of the namespace's etcd Secret if neither this operator nor the legacy controller created it. It
// returns nil for the operator's namespace, whose Secret serves all namespaces.
func (r *runtimeReconciler) foreignEtcdData(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	if namespace == r.Namespaces.OperatorNamespace {
		return nil, nil
	}
	if metadata, err := objectmeta.Get(ctx, r.Cached, secretKind, namespacedName(namespace, name)); err == nil && metadata != nil && isManaged(metadata) {
		return nil, nil
	}
	data, _, err := r.namespaceEtcd.Get(ctx, namespacedName(namespace, name))
	return data, err
}
