package runtimes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// RenderInputs are the parameters of Render other than the runtime.
type RenderInputs struct {
	// Namespace is the namespace of the rendered objects.
	Namespace string
	// Settings are the settings of the namespace.
	Settings meshsettings.Settings
	Served   capability.Set
	// SingleNamespace is true if only the operator's namespace is enabled. Guards and sidecars are not created then.
	SingleNamespace bool
	// OperatorNamespace is the namespace with the ModelMesh configuration, ManagerNamespace that of the manager's pods.
	OperatorNamespace, ManagerNamespace string
	// InUse is true if a model needs the runtime, which is then not scaled to zero.
	InUse bool
}

// Render returns the objects for a ServingRuntime or ClusterServingRuntime in an enabled namespace without other runtimes: the Service
// with its ServiceMonitor, the type constraints, the guards, the Deployment and its autoscaler. Notes describe the label that the
// namespace needs, omitted objects, and the notices that an Event on the runtime would contain.
func Render(in RenderInputs, object *unstructured.Unstructured) (objects []*unstructured.Unstructured, notes []string, err error) {
	rt, err := decodeRuntime(object)
	if err != nil {
		return nil, nil, err
	}
	if !rt.NeedsDeployment() {
		return nil, []string{"the operator creates no objects for this runtime: spec.multiModel is not true, or spec.disabled is true"}, nil
	}
	if problem := in.validateSpec(rt); problem != nil {
		return nil, nil, problem
	}
	namespace := &corev1.Namespace{}
	namespace.SetGroupVersionKind(namespaceKind)
	namespace.SetName(in.Namespace)
	if objects, err = apply.Render(in.buildNamespaceObjects(object.GetName(), rt.Spec), modelmesh.ComponentName, namespace); err != nil {
		return nil, nil, err
	}
	runtimeObjects, notes, err := in.buildRuntimeObjects(object.GetName(), rt)
	if err != nil {
		return nil, nil, err
	}
	rendered, err := apply.Render(runtimeObjects, modelmesh.ComponentName, rt.Object)
	notes = append(notes,
		fmt.Sprintf("namespace %s needs the label %s=true", in.Namespace, modelmesh.LabelEnabled),
		fmt.Sprintf("ConfigMap %s lists this runtime alone; in the cluster it lists all runtimes of the namespace", resources.ConstraintsName),
		fmt.Sprintf("Secret %s is a copy of that in the namespace of the manager and is not shown", in.Settings.EtcdSecretName))
	return append(objects, rendered...), notes, err
}

// decodeRuntime decodes a ServingRuntime or ClusterServingRuntime.
func decodeRuntime(object *unstructured.Unstructured) (modelmesh.Runtime, error) {
	r, err := pkgresources.Decode[v1alpha1.ServingRuntime](object)
	if err != nil {
		return modelmesh.Runtime{}, err
	}
	rt := modelmesh.Runtime{Object: r, Spec: &r.Spec, DecodeError: r.Malformed}
	if object.GetKind() == capability.ClusterServingRuntime.Kind {
		rt.Object = (*v1alpha1.ClusterServingRuntime)(r)
	}
	return rt, nil
}

// namespaceInputs returns the inputs for the objects of the namespace. In a single-namespace installation there is no sidecar, because
// its service account would need cluster-wide permissions.
func (in RenderInputs) namespaceInputs(tls *resources.TLSInputs) resources.NamespaceInputs {
	inputs := resources.NamespaceInputs{Namespace: in.Namespace, Settings: in.Settings, TLS: tls, OpenShift: in.Served.IsOpenShift(), OperatorNamespace: in.OperatorNamespace, ManagerNamespace: in.ManagerNamespace}
	if !in.SingleNamespace {
		inputs.Proxy = authproxy.Decide(in.Settings, in.Namespace, in.Served)
	}
	return inputs
}

// buildGuards returns the objects that must be applied before any Deployment. A single-namespace installation has no permissions for
// them.
func (in RenderInputs) buildGuards(inputs resources.NamespaceInputs) apply.Desired {
	if in.SingleNamespace {
		return nil
	}
	return resources.BuildGuards(inputs)
}

// serviceAccountName returns the service account of the pods, or "" for the default one.
func (in RenderInputs) serviceAccountName() string {
	if in.SingleNamespace {
		return in.Settings.ServiceAccountName
	}
	return authproxy.ServiceAccountName(in.Settings, in.Served)
}

// replicaInputs returns the inputs for the replica count that do not depend on live objects.
func (in RenderInputs) replicaInputs(rt modelmesh.Runtime, scale pkgmodelmesh.Autoscale, needed bool) resources.ReplicaInputs {
	return resources.ReplicaInputs{
		SpecReplicas: rt.Spec.Replicas, PodsPerRuntime: in.Settings.PodsPerRuntime, ScaleToZero: in.Settings.ScaleToZero, Autoscale: scale, Needed: needed,
	}
}

// tlsInputs returns the inputs for a TLS Secret of unknown content, or nil if traffic is not encrypted.
func (in RenderInputs) tlsInputs() *resources.TLSInputs {
	if !in.Settings.TLS.Enabled() {
		return nil
	}
	return &resources.TLSInputs{SecretName: in.Settings.TLS.SecretName}
}

// buildNamespaceObjects returns the objects that all runtimes of the namespace share.
func (in RenderInputs) buildNamespaceObjects(name string, spec *v1alpha1.ServingRuntimeSpec) apply.Desired {
	inputs := in.namespaceInputs(in.tlsInputs())
	constraints := resources.BuildConstraints(in.Namespace, map[string]*v1alpha1.ServingRuntimeSpec{name: spec}, in.Settings.RESTProxy.Enabled)
	desired := apply.Desired{{Config: resources.BuildService(inputs)}, {Config: constraints, Ownership: apply.Unowned}}
	desired = append(desired, in.buildGuards(inputs)...)
	if in.Served.Has(capability.ServiceMonitor) && resources.ServiceMonitorEnabled(in.Settings) {
		// The owner is the Service, which has no UID yet.
		desired = append(desired, apply.Object{Config: resources.BuildServiceMonitor(inputs), Ownership: apply.Unowned})
	}
	return desired
}

// buildRuntimeObjects returns the Deployment of the runtime and its autoscaler.
func (in RenderInputs) buildRuntimeObjects(name string, rt modelmesh.Runtime) (apply.Desired, []string, error) {
	scale, notes := pkgmodelmesh.ParseAutoscaling(rt.Object.GetAnnotations())
	inputs := resources.RuntimeInputs{NamespaceInputs: in.namespaceInputs(in.tlsInputs()), Name: name, Annotations: rt.Object.GetAnnotations(), Spec: rt.Spec}
	inputs.Settings.ServiceAccountName = in.serviceAccountName()
	replicas := resources.DecideReplicas(in.replicaInputs(rt, scale, in.InUse))
	inputs.Replicas = &replicas.Count
	built, err := resources.BuildDeployment(inputs)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errInvalidSpec, err)
	}
	desired := apply.Desired{{Config: built.Config}}
	if replicas.Autoscaled {
		desired.Add(resources.BuildAutoscaler(inputs, rt.Object.GetLabels(), scale))
	}
	if replicas.Count == 0 && !in.InUse {
		notes = append(notes, "there are no pods until a model needs the runtime (setting scaleToZero)")
	}
	return desired, append(notes, built.Notices...), nil
}
