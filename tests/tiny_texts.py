"""Small transformers models with tokenisers of their own, made of a few sentences."""

import torch

SENTENCES = [
    "The cat sat on the mat, and the dog barked.",
    "Unbelievable weather today!",
    "A boat of 12 men was lost near the coast in 1912; none of them returned.",
    "it's raining",
    "Über den Wolken muss die Freiheit wohl grenzenlos sein.",
    "one",
    "The weather was unbelievable, the men said, and the boat sat on the sand.",
    "हिन्दी में एक वाक्य",
    "barking dogs",
    "Today the cat returned to the boat.",
]


def _save(folder, core, model, **special):
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, **special)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return str(folder)


def bert_folder(folder, positions=64, seed=0):
    """A small BERT with WordPiece: lower case, special tokens at both ends."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    core = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer, core.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    core.train_from_iterator(SENTENCES, trainers.WordPieceTrainer(vocab_size=150, special_tokens=special))
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, core.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    )
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=150,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=20,
        max_position_embeddings=positions,
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return _save(folder, core, BertModel(config), model_max_length=positions, **names)


def gpt_folder(folder, seed=1):
    """A small GPT-2 with bytes as letters: no special tokens and none for padding."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2Model

    core = Tokenizer(models.BPE())
    core.pre_tokenizer, core.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(SENTENCES, trainers.BpeTrainer(vocab_size=320, initial_alphabet=letters))
    torch.manual_seed(seed)
    config = GPT2Config(vocab_size=320, n_embd=12, n_layer=2, n_head=2, n_positions=96, bos_token_id=0, eos_token_id=0)
    return _save(folder, core, GPT2Model(config))
