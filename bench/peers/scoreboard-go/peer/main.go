// controller-runtime on the scoreboard.
//
// Default: whole objects in the cache, custom ones unstructured. Tuned: managedFields
// dropped, types that hold only the fields that are read, Pods by label on the server.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	tuned  = os.Getenv("BENCH_VARIANT") == "tuned"
	onPods = os.Getenv("BENCH_WORKLOAD") == "P"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// slimPod keeps of a Pod what is read.
func slimPod(in any) (any, error) {
	if pod, ok := in.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		pod.Spec = corev1.PodSpec{}
		pod.Status = corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions}
	}
	return in, nil
}

func options() ctrl.Options {
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	made := ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "127.0.0.1:0"},
		// The client reads unstructured objects from the server unless it is told so.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	}
	if !tuned {
		return made
	}
	register(scheme)
	pods := cache.ByObject{Transform: slimPod}
	if !onPods {
		pods.Label = labels.SelectorFromSet(labels.Set{"app": "ambient-code-runner"})
	}
	made.Cache = cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&corev1.Pod{}: pods},
	}
	return made
}

// reconciler reads an object from the cache and notes what it has.
func reconciler(from client.Client, p *probe, empty func() client.Object, read func(client.Object) sight) reconcile.Func {
	return func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		object := empty()
		if err := from.Get(ctx, request.NamespacedName, object); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		s := read(object)
		s.namespace, s.name = object.GetNamespace(), object.GetName()
		s.labels, s.annotations = object.GetLabels(), object.GetAnnotations()
		s.owners = object.GetOwnerReferences()
		p.note(s)
		return ctrl.Result{}, nil
	}
}

func unstructuredOf(kind string) func() client.Object {
	return func() client.Object {
		made := &unstructured.Unstructured{}
		made.SetGroupVersionKind(version.WithKind(kind))
		return made
	}
}

func readPod(object client.Object) sight {
	pod := object.(*corev1.Pod)
	s := sight{kind: "Pod", phase: string(pod.Status.Phase)}
	for _, each := range pod.Status.Conditions {
		s.words += len(each.Type) + len(each.Status)
	}
	return s
}

func readSession(object client.Object) sight {
	session := object.(*AgenticSession)
	s := sight{kind: "AgenticSession", phase: session.Status.Phase, timeout: session.Spec.Timeout}
	for _, each := range session.Status.Conditions {
		s.words += len(each.Type) + len(each.Status)
	}
	for _, each := range session.Spec.Repos {
		s.words += len(each.URL)
	}
	return s
}

func readUnstructured(object client.Object) sight {
	content := object.(*unstructured.Unstructured).Object
	s := sight{kind: object.GetObjectKind().GroupVersionKind().Kind}
	s.phase, _, _ = unstructured.NestedString(content, "status", "phase")
	s.timeout, _, _ = unstructured.NestedInt64(content, "spec", "timeout")
	s.words = words(content, []string{"status", "conditions"}, "type", "status")
	s.words += words(content, []string{"spec", "repos"}, "url")
	return s
}

// words is the length of some fields of each element of a list.
func words(content map[string]any, path []string, names ...string) int {
	found, _, _ := unstructured.NestedFieldNoCopy(content, path...)
	list, _ := found.([]any)
	total := 0
	for _, each := range list {
		for _, name := range names {
			text, _ := each.(map[string]any)[name].(string)
			total += len(text)
		}
	}
	return total
}

func controllers(mgr ctrl.Manager) {
	p, from := newProbe(), mgr.GetClient()
	build := func(name string) *ctrl.Builder { return ctrl.NewControllerManagedBy(mgr).Named(name) }
	if onPods {
		pod := func() client.Object { return &corev1.Pod{} }
		must(build("pods").For(pod()).Complete(reconciler(from, p, pod, readPod)))
		return
	}
	session, readsSession := unstructuredOf("AgenticSession"), readUnstructured
	settings, readsSettings := unstructuredOf("ProjectSettings"), readUnstructured
	if tuned {
		session, readsSession = func() client.Object { return &AgenticSession{} }, readSession
		settings = func() client.Object { return &ProjectSettings{} }
		readsSettings = func(client.Object) sight { return sight{kind: "ProjectSettings"} }
	}
	must(build("sessions").For(session()).Owns(&corev1.Pod{}).Complete(reconciler(from, p, session, readsSession)))
	must(build("settings").For(settings()).Complete(reconciler(from, p, settings, readsSettings)))
}

func main() {
	log.SetLogger(zap.New(zap.UseDevMode(false), zap.WriteTo(os.Stderr)))
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), options())
	must(err)
	controllers(mgr)
	must(mgr.Start(ctrl.SetupSignalHandler()))
}
