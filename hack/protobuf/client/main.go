// Command client speaks protobuf with a server, as Go operators do, and says what it saw.
//
// Run it by hand (go run ./client KUBECONFIG NAMESPACE): it creates, changes, lists, watches and
// deletes there, and ends with an error as soon as an answer is not what it should be.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// recorder counts the types of the answers.
type recorder struct {
	inner http.RoundTripper
	seen  map[string]int
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.inner.RoundTrip(request)
	if err == nil {
		r.seen[response.Header.Get("Content-Type")]++
	}
	return response, err
}

func main() {
	log.SetFlags(0)
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err)
	namespace := os.Args[2]
	seen := &recorder{seen: map[string]int{}}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		seen.inner = inner
		return seen
	})
	bare, err := metadata.NewForConfig(config)
	check(err)
	config.ContentType = protobuf
	config.AcceptContentTypes = protobuf + "," + runtime.ContentTypeJSON
	client, err := typed.NewForConfig(config)
	check(err)
	about, err := discovery.NewDiscoveryClientForConfig(config)
	check(err)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()

	maps := client.ConfigMaps(namespace)
	pods := client.Pods(namespace)
	events, err := maps.Watch(ctx, meta.ListOptions{LabelSelector: "of=go"})
	check(err)
	made, err := maps.Create(ctx, configMap("one"), meta.CreateOptions{})
	check(err)
	expect(events, watch.Added, "one")
	made.Data["a"] = "2"
	made, err = maps.Update(ctx, made, meta.UpdateOptions{})
	check(err)
	must(made.Data["a"] == "2" && string(made.BinaryData["b"]) == "\x00\xff", "update")
	expect(events, watch.Modified, "one")
	patch := []byte(`{"data":{"a":"3"}}`)
	made, err = maps.Patch(ctx, "one", types.MergePatchType, patch, meta.PatchOptions{})
	check(err)
	must(made.Data["a"] == "3" && len(made.ManagedFields) > 0, "patch")
	expect(events, watch.Modified, "one")
	check(maps.Delete(ctx, "one", meta.DeleteOptions{}))
	expect(events, watch.Deleted, "one")
	events.Stop()
	_, err = maps.Get(ctx, "one", meta.GetOptions{})
	must(errors.IsNotFound(err), "not found")

	for i := range 30 {
		_, err = pods.Create(ctx, pod(fmt.Sprintf("pod-%02d", i)), meta.CreateOptions{})
		check(err)
	}
	page, err := pods.List(ctx, meta.ListOptions{Limit: 20})
	check(err)
	must(len(page.Items) == 20 && page.Continue != "", "a page")
	rest, err := pods.List(ctx, meta.ListOptions{Limit: 20, Continue: page.Continue})
	check(err)
	must(len(rest.Items) == 10 && rest.Items[9].Spec.Containers[0].Image == "a:1", "a rest")
	_, err = pods.Create(ctx, pod("pod-00"), meta.CreateOptions{})
	must(errors.IsAlreadyExists(err), "already exists")
	_, err = pods.Create(ctx, pod("Pod_00"), meta.CreateOptions{})
	must(errors.IsInvalid(err), "invalid")
	found := err.(errors.APIStatus).Status()
	must(found.Details != nil && len(found.Details.Causes) > 0, "causes")

	source := cache.NewListWatchFromClient(client.RESTClient(), "pods", namespace, fields.Everything())
	informer := cache.NewSharedInformer(source, &core.Pod{}, 0)
	go informer.Run(ctx.Done())
	must(cache.WaitForCacheSync(ctx.Done(), informer.HasSynced), "an informer")
	must(len(informer.GetStore().ListKeys()) == 30, "an informer's store")
	resource := core.SchemeGroupVersion.WithResource("pods")
	partial, err := bare.Resource(resource).Namespace(namespace).List(ctx, meta.ListOptions{})
	check(err)
	must(len(partial.Items) == 30 && partial.Items[0].Name == "pod-00", "bare metadata")
	_, groups, err := about.ServerGroupsAndResources()
	check(err)
	must(len(groups) > 10, "discovery")
	described, err := about.OpenAPISchema()
	check(err)
	must(len(described.Definitions.AdditionalProperties) > 500, "OpenAPI")
	check(pods.DeleteCollection(ctx, meta.DeleteOptions{GracePeriodSeconds: new(int64)}, meta.ListOptions{}))
	for kind, count := range seen.seen {
		fmt.Println(count, kind)
	}
}

func configMap(name string) *core.ConfigMap {
	return &core.ConfigMap{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"of": "go"}},
		Data:       map[string]string{"a": "1"},
		BinaryData: map[string][]byte{"b": {0, 0xff}},
	}
}

func pod(name string) *core.Pod {
	containers := []core.Container{{Name: "main", Image: "a:1"}}
	return &core.Pod{ObjectMeta: meta.ObjectMeta{Name: name}, Spec: core.PodSpec{Containers: containers}}
}

func expect(events watch.Interface, kind watch.EventType, name string) {
	select {
	case event := <-events.ResultChan():
		made, ok := event.Object.(*core.ConfigMap)
		must(ok && event.Type == kind && made.Name == name, strings.ToLower(string(kind)))
	case <-time.After(10 * time.Second):
		log.Fatal("no event: ", kind)
	}
}

func must(so bool, what string) {
	if !so {
		log.Fatal("not as it should be: ", what)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
