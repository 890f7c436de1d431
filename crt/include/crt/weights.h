/* crt/weights.h: the parameters of an instance: bound from a parameter image,
 * or shared with another instance; counted while they are used.
 * Knows no file format but crt/params.h; copies only to other devices. */
#ifndef CRT_WEIGHTS_H
#define CRT_WEIGHTS_H

#include "crt/graph.h"
#include "crt/params.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For every function of this header:
 *
 * Thread  binding, sharing and releasing change the use count of an image:
 *         take your own lock; runs of instances that share need none
 * Errors  CRT_ERR_NULL as in crt/graph.h. A parameter "fits" if its name, type,
 *         shape and layout are those that the model was built with, it is not
 *         packed, and its bytes lie aligned, outside of the memory that runs
 *         of g use; else CRT_ERR_NAME, CRT_ERR_DTYPE, CRT_ERR_SHAPE,
 *         CRT_ERR_LAYOUT, CRT_ERR_SIZE, CRT_ERR_CODEC, CRT_ERR_ALIGN or
 *         CRT_ERR_OVERLAP. All is checked before anything changes; only a
 *         device can fail later (CRT_ERR_DEVICE): its parameter is then not
 *         bound, those before it are
 *
 * A parameter whose home is in a region of the model's (on a device, say) is
 * copied there; all others are used where they are. */

/* The number of parameters, the index by name (or CRT_ERR_NAME), and facts. */
int crt_graph_parameter_count(const struct crt_graph *g);
int crt_graph_find_parameter(const struct crt_graph *g, const char *name);
const struct crt_tensor *crt_graph_parameter_info(const struct crt_graph *g,
                                                  uint32_t index);

/* The bytes of a parameter where runs read them; NULL: not bound. */
const void *crt_graph_parameter(const struct crt_graph *g, uint32_t index);

/* Binds every parameter of the model that the image has, one at least; others
 * stay as they are, and unknown names are ignored. A model without names
 * (--names ids) uses its parameters' numbers, "0", "1", ..., as names.
 *
 * Owner   params and its image are the caller's and must stay until released;
 *         params->users counts what is bound to it
 * Errors  as above; CRT_ERR_NULL: params holds no image, verify one first;
 *         CRT_ERR_NAME: it has no parameter of the model's; of CRT_ERR_CODEC:
 *         unpack the image first (crt/unpack.h) */
int crt_graph_load_params(struct crt_graph *g, struct crt_params *params);

/* Binds one parameter to bytes that are arranged as its layout says, uncounted.
 * NULL: unbinds it.
 *
 * Units   bytes: exactly crt_tensor.bytes
 * Owner   the caller; must stay until released or bound again
 * Errors  CRT_ERR_INDEX, CRT_ERR_SIZE, CRT_ERR_ALIGN, CRT_ERR_DEVICE,
 *         CRT_ERR_OVERLAP */
int crt_graph_bind_parameter(struct crt_graph *g, uint32_t index,
                             const void *data, uint32_t bytes);

/* Makes g use one parameter of another instance, of any model, in place of its
 * own. The donor may be released first: the image stays in use.
 *
 * Errors  as above; CRT_ERR_INDEX; CRT_ERR_UNBOUND: the donor has none, or only
 *         on a device */
int crt_graph_share_parameter(struct crt_graph *g, uint32_t index,
                              const struct crt_graph *donor,
                              uint32_t donor_index);

/* The same for every parameter of g (what = NULL), or those that an image
 * names: only names and content hashes of it are read.
 *
 * Errors  as above; CRT_ERR_CONTENT: the donor's are not those of `what`;
 *         CRT_ERR_NULL: `what` holds no image; CRT_ERR_NAME: nor one of g's */
int crt_graph_share_params(struct crt_graph *g, const struct crt_graph *donor,
                           const struct crt_params *what);

/* Unbinds all parameters, before an instance is given up or initialised anew.
 */
int crt_graph_release_params(struct crt_graph *g);

/* Closes an image; p is then all zero.
 *
 * Errors  CRT_ERR_NULL; CRT_ERR_IN_USE while an instance is bound to it */
int crt_params_close(struct crt_params *p);

#ifdef __cplusplus
}
#endif

#endif
