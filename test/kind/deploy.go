package kind

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

const (
	fieldOwner   = "deploy-kind"
	pollInterval = 500 * time.Millisecond
	crdTimeout   = time.Minute
)

// Deployer deploys to one cluster.
type Deployer struct {
	// Client of the cluster, with the types of [AddToScheme].
	Client client.Client
	Clock  clock.PassiveClock
	// Out receives the progress.
	Out io.Writer
}

// AddToScheme adds the types that a Deployer reads.
func AddToScheme(s *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, apiextensionsv1.AddToScheme, mlflowv1.AddToScheme} {
		if err := add(s); err != nil {
			return fmt.Errorf("adding to a scheme: %w", err)
		}
	}
	return nil
}

// creationOrder returns the position of an object: CRDs before their objects, Secrets before pods, and MLflow before the webhooks of the
// manager, which is not running yet.
func creationOrder(object client.Object) int {
	switch object.GetObjectKind().GroupVersionKind().Kind {
	case "CustomResourceDefinition":
		return 0
	case "Namespace":
		return 1
	case "Secret", "ConfigMap":
		return 2
	case "MLflow":
		return 4
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return 5
	default:
		return 3
	}
}

// Objects returns all objects that Deploy applies, in order. They contain the values of existing Secrets.
func (d *Deployer) Objects(ctx context.Context, o Options) ([]client.Object, error) {
	rendered, err := Render(o)
	if err != nil {
		return nil, err
	}
	all, err := Generate(o, func(name string) (map[string][]byte, error) { return d.secretData(ctx, o.Namespace, name) }, d.Clock.Now())
	if err != nil {
		return nil, err
	}
	for _, object := range rendered {
		all = append(all, object)
	}
	slices.SortStableFunc(all, func(a, b client.Object) int { return creationOrder(a) - creationOrder(b) })
	return all, nil
}

func (d *Deployer) secretData(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := d.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	return secret.Data, nil
}

// Deploy applies all objects. It can be called again, even with other options.
func (d *Deployer) Deploy(ctx context.Context, o Options) error {
	all, err := d.Objects(ctx, o)
	if err != nil {
		return err
	}
	for i, object := range all {
		if creationOrder(object) > 0 && i > 0 && creationOrder(all[i-1]) == 0 {
			if err := d.waitEstablished(ctx, all[:i]); err != nil {
				return err
			}
		}
		if err := d.Apply(ctx, object); err != nil {
			return err
		}
	}
	fmt.Fprintf(d.Out, "%d objects applied to namespace %s: runs in %s, models in %s, artifacts in %s\n",
		len(all), o.Namespace, o.BackendStore, o.registryStore(), o.ArtifactStorage)
	return nil
}

// Apply applies one object.
func (d *Deployer) Apply(ctx context.Context, object client.Object, options ...client.ApplyOption) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", object.GetName(), err)
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	desired := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
	options = append(options, client.FieldOwner(fieldOwner), client.ForceOwnership)
	if err := d.Client.Apply(ctx, desired, options...); err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
	}
	return nil
}

// waitEstablished waits until the CRDs are established.
func (d *Deployer) waitEstablished(ctx context.Context, crds []client.Object) error {
	for _, object := range crds {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := wait.PollUntilContextTimeout(ctx, pollInterval, crdTimeout, true, func(ctx context.Context) (bool, error) {
			if err := d.Client.Get(ctx, client.ObjectKeyFromObject(object), crd); err != nil {
				return false, fmt.Errorf("reading CustomResourceDefinition: %w", err)
			}
			return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}), nil
		})
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", object.GetName(), err)
		}
	}
	return nil
}

// Wait waits until the condition Available of the MLflow is True for its generation and its Deployment has an available pod.
func (d *Deployer) Wait(ctx context.Context, o Options, timeout time.Duration) error {
	last := "the operator has not reconciled it yet"
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = d.notReadyReason(ctx, o)
		return last == "", err
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("MLflow is not ready after %s: %s", timeout, last)
	}
	if err == nil {
		fmt.Fprintf(d.Out, "MLflow is ready: kubectl -n %s port-forward service/mlflow 8443\n", o.Namespace)
	}
	return err
}

// notReadyReason returns why MLflow is not ready, or "" if it is.
func (d *Deployer) notReadyReason(ctx context.Context, o Options) (string, error) {
	mlflow := &mlflowv1.MLflow{}
	if err := d.Client.Get(ctx, client.ObjectKey{Name: mlflowv1.SingletonName}, mlflow); err != nil {
		return "", fmt.Errorf("reading MLflow: %w", err)
	}
	available := meta.FindStatusCondition(mlflow.Status.Conditions, "Available")
	if available == nil || available.Status != metav1.ConditionTrue || available.ObservedGeneration != mlflow.Generation {
		if available == nil {
			return "condition Available does not exist yet", nil
		}
		return fmt.Sprintf("%s: %s", available.Reason, available.Message), nil
	}
	server := &appsv1.Deployment{}
	if err := d.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: "mlflow"}, server); err != nil {
		return "", fmt.Errorf("reading the Deployment of MLflow: %w", err)
	}
	if server.Status.AvailableReplicas == 0 {
		return "Deployment mlflow has no available pod", nil
	}
	return "", nil
}
