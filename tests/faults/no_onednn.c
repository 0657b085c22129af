/* A libdnnl.so.2 that has nothing of oneDNN. */
int no_onednn_at_all(void);
int no_onednn_at_all(void)
{
    return 0;
}
