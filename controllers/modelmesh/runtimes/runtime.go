package runtimes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/modelmesh"
)

// annotationProduct names a ConfigMap that has to be there before the pods are.
const annotationProduct = "productConfig"

// noProduct begins as it always did.
const noProduct = "Unable to access ConfigMap"

// runtime brings about the Deployment of a runtime and its autoscaler. again is when a grace period ends; 0 is never.
func (s *server) runtime(ctx context.Context, f *facts, name string, t modelmesh.Runtime) (again time.Duration, err error) {
	problem, err := s.invalid(ctx, f, t)
	if err != nil {
		return 0, err
	}
	if problem != nil {
		s.reports.validity(f.Namespace, t.Object, problem)
		return 0, nil // its Deployment stays as it is; what mends it wakes us
	}
	scale, notes := mm.Autoscaling(t.Object.GetAnnotations())
	live, err := s.deployment(ctx, f, name)
	if err != nil {
		return 0, err
	}
	in := resources.RuntimeInputs{
		NamespaceInputs: f.inputs(f.tls), Name: name, Annotations: t.Object.GetAnnotations(), Spec: t.Spec, Restricted: f.restricted,
	}
	replicas := s.replicas(f, name, t, scale, live)
	in.Replicas = &replicas.Count
	config, notices, err := s.render(ctx, f, in, live)
	if errors.Is(err, errSpec) {
		s.reports.validity(f.Namespace, t.Object, err)
		return replicas.Again, nil
	}
	if err != nil {
		return replicas.Again, err
	}
	s.reports.validity(f.Namespace, t.Object, nil)
	s.reports.say(f.Namespace, t.Object, aboutPods, ReasonNotice, strings.Join(append(append(notes, notices...), f.unguarded()...), "; "))
	if !replicas.Autoscaled {
		scale = mm.Autoscale{}
	}
	version := "" // the autoscaler may have written since
	if replicas.Autoscaled && live != nil {
		version = live.ResourceVersion
	}
	opened := s.opened(in, live)
	if opened != "" {
		if lacks, err := s.lacksKey(ctx, f, in.Proxy); err != nil || lacks {
			return replicas.Again, err // its event wakes us
		}
	}
	if err := s.write(ctx, f, t, in, apply.Object{Config: config, Version: version}, scale); err != nil || f.held != nil {
		return replicas.Again, err
	}
	s.reports.say(f.Namespace, t.Object, aboutTakeOver, ReasonReplaced, opened)
	return replicas.Again, nil
}

// write applies the objects of a runtime once its guards stand; a scale that is not enabled takes the autoscaler away.
func (s *server) write(ctx context.Context, f *facts, t modelmesh.Runtime, in resources.RuntimeInputs, deployment apply.Object, scale mm.Autoscale) error {
	if f.held != nil {
		return nil
	}
	disowns := func(ref metav1.OwnerReference) bool { // a runtime of the namespace hides one of the cluster by its name
		return strings.HasPrefix(ref.APIVersion, "serving.kserve.io/") && ref.Name == in.Name && ref.UID != t.Object.GetUID()
	}
	deployment.AdoptIf, deployment.DropOwnerReferences = adoptsOriginals, disowns
	desired := apply.Desired{deployment}
	name := resources.DeploymentName(f.Settings.ServiceName, in.Name)
	var err error
	if scale.Enabled {
		desired = append(desired, apply.Object{Config: resources.BuildAutoscaler(in, t.Object.GetLabels(), scale), AdoptIf: adoptsOriginals, DropOwnerReferences: disowns})
	} else {
		err = s.removeAll(ctx, f.Namespace, autoscalerKind, func(o metav1.Object) bool { return o.GetName() == name })
	}
	return errors.Join(err, s.applier.Apply(ctx, t.Object, desired))
}

// invalid says why a runtime cannot be served, as far as that is for its author or for the administrator of the namespace to mend.
func (s *server) invalid(ctx context.Context, f *facts, t modelmesh.Runtime) (problem, err error) {
	if problem := f.specProblem(t); problem != nil {
		return problem, nil
	}
	if problem := s.authors.Forbidden(webhook.References(s.authors, t.Spec, f.Namespace)); problem != nil {
		return problem, nil
	}
	if f.tlsProblem != nil {
		return f.tlsProblem, nil
	}
	product := t.Object.GetAnnotations()[annotationProduct]
	if product == "" {
		return nil, nil
	}
	head, err := capability.GetMetadata(ctx, s.Cached, configMapKind, inside(f.Namespace, product))
	if err == nil && head == nil {
		problem = fmt.Errorf("%s '%s', which annotation %s names; create it", noProduct, product, annotationProduct)
	}
	return problem, err
}

// deployment returns the Deployment of a runtime as it is: from memory, or what the original left, which memory does not show. Nor
// does it at once when that was taken over, and taking it for new then would roll its pods. Nil is none. It must not be changed.
func (s *server) deployment(ctx context.Context, f *facts, name string) (*appsv1.Deployment, error) {
	key := inside(f.Namespace, resources.DeploymentName(f.Settings.ServiceName, name))
	d := &appsv1.Deployment{}
	err := s.Cached.Get(ctx, key, d, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if apierrors.IsNotFound(err) {
		err = s.live.Get(ctx, key, d)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	return d, nil
}

// replicas decides how many pods a runtime has.
func (s *server) replicas(f *facts, name string, t modelmesh.Runtime, scale mm.Autoscale, live *appsv1.Deployment) resources.Replicas {
	runtime := inside(f.Namespace, name)
	in := f.replicas(t, scale, needed(f.models, mm.Labels(name, t.Spec, f.Settings.RESTProxy.Enabled)))
	in.IdleSince, _ = s.idle.Get(runtime)
	in.Now = s.clock.Now()
	if live != nil {
		in.Live = live.Spec.Replicas
	}
	decided := resources.DecideReplicas(in)
	s.idle.Set(runtime, decided.IdleSince)
	return decided
}

// render builds the Deployment in the form that its pods shall have, see AnnotationOriginal.
func (s *server) render(ctx context.Context, f *facts, in resources.RuntimeInputs, live *appsv1.Deployment) (*appsv1ac.DeploymentApplyConfiguration, []string, error) {
	if live != nil {
		original, err := s.original(ctx, f, in, live)
		if err != nil || original != nil {
			return original, nil, err
		}
	}
	claims, missing, err := s.claimsFor(ctx, f, in)
	if err != nil {
		return nil, nil, err
	}
	in.Claims = claims
	in.Settings.ServiceAccountName = f.account()
	built, err := resources.BuildDeployment(in)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errSpec, err)
	}
	notices := append(append([]string{}, f.storage.notices...), built.Notices...)
	for _, claim := range missing {
		notices = append(notices, fmt.Sprintf("PersistentVolumeClaim %s does not exist and is not mounted; create it", claim))
	}
	return built.Config, notices, nil
}

// original renders the form of the original where the live Deployment has to keep it; nil where it has not.
func (s *server) original(ctx context.Context, f *facts, in resources.RuntimeInputs, live *appsv1.Deployment) (*appsv1ac.DeploymentApplyConfiguration, error) {
	if !s.keepsOriginal(live) || guarded(&live.Spec.Template, in.Spec) {
		return nil, nil
	}
	in.Form, in.Proxy = resources.Original, nil
	if in.Settings.ServiceAccountName == "" {
		in.Settings.ServiceAccountName = live.Spec.Template.Spec.ServiceAccountName
	}
	claims, _, err := s.claimsFor(ctx, f, in)
	if err != nil {
		return nil, err
	}
	in.Claims = claims
	built, err := resources.BuildDeployment(in)
	if err != nil {
		return nil, nil // it never was rendered, so the form of ours decides
	}
	hash, err := resources.TemplateHash(built.Config)
	if err != nil {
		return nil, err
	}
	same := hash == live.Annotations[AnnotationOriginal]
	if !s.applier.IsManaged(live) {
		same, err = holds(built.Config.Spec.Template, &live.Spec.Template)
	}
	if err != nil || !same {
		return nil, err
	}
	return built.Config.WithAnnotations(map[string]string{AnnotationOriginal: hash}), nil
}

// claimsFor returns the claims that the pods of a runtime mount, and those that they would if they existed.
func (s *server) claimsFor(ctx context.Context, f *facts, in resources.RuntimeInputs) (claims, missing []string, err error) {
	claims, missing = resources.Claims(resources.ClaimInputs{
		Form: in.Form, Listed: f.storage.claims, AllowAny: f.Settings.AllowAnyPVC, Models: f.models,
		Labels: mm.Labels(in.Name, in.Spec, f.Settings.RESTProxy.Enabled),
		Exists: func(claim string) bool {
			head, e := capability.GetMetadata(ctx, s.claims, claimKind, inside(f.Namespace, claim))
			err = errors.Join(err, e)
			return head != nil
		},
	})
	return claims, missing, err
}

// unguarded says that a sidecar was asked for which cannot be; nothing else.
func (in RenderInputs) unguarded() []string {
	if in.Settings.AuthProxy.Mode != meshsettings.AuthProxyAlways || !in.OnlyOwn {
		return nil
	}
	return []string{"setting authProxy.mode always has no effect where the manager serves its own namespace only, and REST is not guarded: " +
		"serve all namespaces, or close the port by a NetworkPolicy"}
}
