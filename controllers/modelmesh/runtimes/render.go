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
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	podresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// RenderInputs is what Render, and a reconcile of a namespace, goes by beside runtimes and what there is in the namespace.
type RenderInputs struct {
	// Namespace is the served namespace that the runtime is rendered for.
	Namespace string
	// Settings are those of the namespace.
	Settings meshsettings.Settings
	Served   capability.Set
	// OnlyOwn: the manager serves its own namespace only, where nothing stands beside runtimes.
	SingleNamespace bool
	// Home is the namespace of the manager.
	OperatorNamespace string
	// Used: a model waits for the runtime, so its pods are there although the settings scale to zero.
	InUse bool
}

// Render returns what a ServingRuntime or a ClusterServingRuntime brings about in a served namespace in which it is the only
// runtime: the Service in front of all runtimes with its ServiceMonitor, the types of models that pods read, their guards, the
// Deployment and its autoscaler. Notes tell what is not shown, and which Events the runtime would get.
func Render(in RenderInputs, object *unstructured.Unstructured) (objects []*unstructured.Unstructured, notes []string, err error) {
	t, err := decodeRuntime(object)
	if err != nil {
		return nil, nil, err
	}
	if !t.NeedsDeployment() {
		return nil, []string{"ModelMesh makes nothing for this runtime: spec.multiModel is not true, or spec.disabled is"}, nil
	}
	if problem := in.validateSpec(t); problem != nil {
		return nil, nil, problem
	}
	namespace := &corev1.Namespace{}
	namespace.SetGroupVersionKind(namespaceKind)
	namespace.SetName(in.Namespace)
	front, err := in.buildNamespaceObjects(object.GetName(), t.Spec)
	if err != nil {
		return nil, nil, err
	}
	if objects, err = apply.Render(front, modelmesh.ComponentName, namespace); err != nil {
		return nil, nil, err
	}
	own, notes, err := in.buildRuntimeObjects(object.GetName(), t)
	if err != nil {
		return nil, nil, err
	}
	rendered, err := apply.Render(own, modelmesh.ComponentName, t.Object)
	notes = append(notes,
		fmt.Sprintf("namespace %s has to bear the label %s=true", in.Namespace, modelmesh.LabelEnabled),
		fmt.Sprintf("ConfigMap %s lists this runtime alone; in the cluster it lists all runtimes of the namespace", resources.ConstraintsName),
		fmt.Sprintf("Secret %s is a copy of that in the namespace of the manager and is not shown", in.Settings.EtcdSecretName))
	return append(objects, rendered...), notes, err
}

// runtimeOf reads a runtime of either scope.
func decodeRuntime(object *unstructured.Unstructured) (modelmesh.Runtime, error) {
	r, err := podresources.Decode[v1alpha1.ServingRuntime](object)
	if err != nil {
		return modelmesh.Runtime{}, err
	}
	out := modelmesh.Runtime{Object: r, Spec: &r.Spec, Malformed: r.Malformed}
	if object.GetKind() == capability.ClusterServingRuntime.Kind {
		out.Object = (*v1alpha1.ClusterServingRuntime)(r)
	}
	return out, nil
}

// inputs are what objects are built from, with the Secret that pods speak TLS with. Where one namespace is served there is no sidecar: what
// it needs beside it, an account with rights on the cluster among it, is not made there.
func (in RenderInputs) namespaceInputs(tls *resources.TLSInputs) resources.NamespaceInputs {
	out := resources.NamespaceInputs{Namespace: in.Namespace, Settings: in.Settings, TLS: tls, OpenShift: in.Served.OpenShift(), OperatorNamespace: in.OperatorNamespace}
	if !in.SingleNamespace {
		out.Proxy = authproxy.Decide(in.Settings, in.Namespace, in.Served)
	}
	return out
}

// guards are what has to stand before any Deployment of a namespace is written. Where one namespace is served there are no rights for it.
func (in RenderInputs) buildGuards(inputs resources.NamespaceInputs) (apply.Desired, error) {
	if in.SingleNamespace {
		return nil, nil
	}
	return resources.BuildGuards(inputs)
}

// account is the service account of pods, "" for the one that every namespace has. Where there is no sidecar, none is made.
func (in RenderInputs) serviceAccountName() string {
	if in.SingleNamespace {
		return in.Settings.ServiceAccountName
	}
	return authproxy.ServiceAccountName(in.Settings, in.Served)
}

// replicas are what the number of pods of a runtime depends on, beside what there is.
func (in RenderInputs) replicaInputs(t modelmesh.Runtime, scale mm.Autoscale, needed bool) resources.ReplicaInputs {
	return resources.ReplicaInputs{
		SpecReplicas: t.Spec.Replicas, PodsPerRuntime: in.Settings.PodsPerRuntime, ScaleToZero: in.Settings.ScaleToZero, Autoscale: scale, Needed: needed,
	}
}

// tls are the inputs of a Secret whose content is not known; nil where traffic is not encrypted.
func (in RenderInputs) tlsInputs() *resources.TLSInputs {
	if !in.Settings.TLS.Enabled() {
		return nil
	}
	return &resources.TLSInputs{SecretName: in.Settings.TLS.SecretName}
}

// front is what all runtimes of the namespace have in common.
func (in RenderInputs) buildNamespaceObjects(name string, spec *v1alpha1.ServingRuntimeSpec) (apply.Desired, error) {
	inputs := in.namespaceInputs(in.tlsInputs())
	constraints, err := resources.BuildConstraints(in.Namespace, map[string]*v1alpha1.ServingRuntimeSpec{name: spec}, in.Settings.RESTProxy.Enabled)
	if err != nil {
		return nil, fmt.Errorf("building ConfigMap %s: %w", resources.ConstraintsName, err)
	}
	desired := apply.Desired{{Config: resources.BuildService(inputs)}, {Config: constraints, Ownership: apply.Unowned}}
	guards, err := in.buildGuards(inputs)
	if err != nil {
		return nil, err
	}
	desired = append(desired, guards...)
	if in.Served.Has(capability.ServiceMonitor) && resources.ServiceMonitorEnabled(in.Settings) {
		// Its owner is the Service, which has no uid yet.
		desired = append(desired, apply.Object{Config: resources.BuildServiceMonitor(inputs), Ownership: apply.Unowned})
	}
	return desired, nil
}

// pods are the Deployment of the runtime and its autoscaler.
func (in RenderInputs) buildRuntimeObjects(name string, t modelmesh.Runtime) (apply.Desired, []string, error) {
	scale, notes := mm.ParseAutoscaling(t.Object.GetAnnotations())
	inputs := resources.RuntimeInputs{NamespaceInputs: in.namespaceInputs(in.tlsInputs()), Name: name, Annotations: t.Object.GetAnnotations(), Spec: t.Spec}
	inputs.Settings.ServiceAccountName = in.serviceAccountName()
	replicas := resources.DecideReplicas(in.replicaInputs(t, scale, in.InUse))
	inputs.Replicas = &replicas.Count
	built, err := resources.BuildDeployment(inputs)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errInvalidSpec, err)
	}
	desired := apply.Desired{{Config: built.Config}}
	if replicas.Autoscaled {
		desired.Add(resources.BuildAutoscaler(inputs, t.Object.GetLabels(), scale))
	}
	if replicas.Count == 0 && !in.InUse {
		notes = append(notes, "there are no pods until a model needs the runtime (setting scaleToZero)")
	}
	return desired, append(notes, built.Notices...), nil
}
